"""alembic's environment: `tillbridge.ledger.schema` hands the connection over."""

from alembic import context

from tillbridge.ledger.models import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter most of a table: it is copied
)
context.run_migrations()
