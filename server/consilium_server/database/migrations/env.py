"""Entry point of Alembic: runs migrations within the given transaction."""

from __future__ import annotations

from alembic import context

from consilium_server.database.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transactional_ddl=True,  # true of both databases, as transactions are begun here
)
with context.begin_transaction():
    context.run_migrations()
