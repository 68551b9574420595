"""`consilium operator`: a task from its file to its model."""
