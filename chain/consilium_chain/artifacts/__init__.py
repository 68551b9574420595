"""The artifacts of tasks: their store, and the list that the chain gives."""
