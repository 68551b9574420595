"""The `consilium` command. This room may know every other; nothing knows it."""
