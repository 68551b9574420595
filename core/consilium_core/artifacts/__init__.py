"""A content-addressed store in folders and behind URLs. It knows no chain."""
