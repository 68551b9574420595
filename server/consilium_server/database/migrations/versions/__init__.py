"""Versions of the tables, which Alembic goes through (`database.engine.upgrade`)."""
