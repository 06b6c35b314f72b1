"""How items were before, and when the storefront had what staff took off sale."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "menu_past",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("until_ms", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("store", "external_id", "until_ms"),
    )
    op.create_index("ix_menu_past_until", "menu_past", ["until_ms"])
    with op.batch_alter_table("overrides") as overrides:
        overrides.add_column(sa.Column("told_at", sa.Integer(), nullable=True))
