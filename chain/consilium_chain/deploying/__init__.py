"""Deployment to a named network: step by step, resumable, and verified at its end."""
