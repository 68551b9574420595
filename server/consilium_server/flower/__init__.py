"""All that uses Flower's private API at the server."""
