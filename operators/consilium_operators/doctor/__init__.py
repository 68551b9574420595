"""Checks of a machine for its role, and of a node's connections. Each fault has a remedy. Changes nothing."""
