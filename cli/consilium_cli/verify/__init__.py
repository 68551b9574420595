"""`consilium verify`: a round of a task, checked from chain and artifact store alone."""
