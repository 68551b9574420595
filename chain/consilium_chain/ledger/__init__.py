"""The contracts as typed calls and typed values."""
