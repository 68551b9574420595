"""Differential privacy and its accountant, exact statistics, and the risk of membership inference."""
