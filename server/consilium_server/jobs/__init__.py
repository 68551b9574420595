"""The server's jobs. A message only says that a job is due. The job reads the state, and does the missing work."""
