"""The server's jobs. A message only says that a job is due: each looks at the state, and does the missing work."""
