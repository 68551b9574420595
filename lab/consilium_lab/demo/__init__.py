"""`consilium demo`: one task, from the first join to the last payment, with a report."""
