"""Consilium's cryptography and integer encodings.

Pure: no clock, no network, no randomness of its own (random values are arguments), no machine-learning framework.
It reads one file, the KZG ceremony's setup, lazily and once per process (`kzg.setup`).
"""
