"""Dishonest hospitals, voters and strangers, for demos and tests of defences."""
