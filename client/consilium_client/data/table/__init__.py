"""The table kind of data: reader and profile."""
