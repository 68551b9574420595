"""The text kind of data: reader and profile."""
