"""`consilium doctor`: what keeps a role from its work on this machine, and what to do about it."""
