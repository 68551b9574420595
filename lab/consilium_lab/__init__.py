"""The lab: whole networks on one machine, adversaries, and the economics of a task."""
