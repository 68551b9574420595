"""Labelled examples: tables, texts and images, read from files of any origin."""
