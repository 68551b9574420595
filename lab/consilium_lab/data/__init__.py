"""Fetches the demo's data sets from their publishers."""
