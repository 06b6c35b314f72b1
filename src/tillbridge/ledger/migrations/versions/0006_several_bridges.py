"""Several bridges on one ledger: who they are, who serves what, and their shared secrets."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "bridges",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False, server_default=""),
        sa.Column("version", sa.Text(), nullable=False, server_default=""),
        sa.Column("started_at", _WHOLE, nullable=False),
        sa.Column("seen_at", _WHOLE, nullable=False),
        sa.Column("detail", sa.Text(), nullable=False, server_default="{}"),
    )
    op.create_table(
        "leases",
        sa.Column("store", sa.Text(), primary_key=True),
        sa.Column("holder", sa.Text(), nullable=False, server_default=""),
        sa.Column("token", _WHOLE, nullable=False, server_default="0"),
        sa.Column("since", _WHOLE, nullable=False),
        sa.Column("pinned", sa.Text(), nullable=False, server_default=""),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False, server_default="{}"),
        sa.Column("actor", sa.Text(), nullable=False, server_default="{}"),
        sa.Column("at", _WHOLE, nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("done_at", _WHOLE, nullable=True),
    )
    op.create_table(
        "secrets",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("changed_at", _WHOLE, nullable=False),
    )
