"""`consilium doctor`: finds the faults that keep a role from its work on this machine, and names their remedies."""
