"""The sponsor of hospitals' gas."""
