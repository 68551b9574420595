"""Task files: their types, their terms on chain, and their cost."""
