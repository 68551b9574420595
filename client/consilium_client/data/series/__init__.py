"""Time series: measurements of stays at irregular times."""
