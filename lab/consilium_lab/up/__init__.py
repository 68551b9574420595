"""`consilium up`: a whole network on one machine, to try things."""
