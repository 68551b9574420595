"""The image kind of data: reader and profile."""
