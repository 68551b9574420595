"""The operators' room: a task from its file to its model, with the model's proof."""
