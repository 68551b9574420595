"""Tells people of events that cost them money, by webhook and e-mail."""
