"""The server's jobs. A queue carries only the word that one is due: each looks at what is, and does what lacks."""
