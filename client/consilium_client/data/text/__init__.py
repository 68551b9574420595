"""Texts: reader and profile."""
