"""The content-addressed artifact store and its back ends."""
