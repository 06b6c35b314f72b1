"""Communities: their mirror, what we say of items, and their orders."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "community_records",
        sa.Column("community", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.Column("store_id", sa.Text(), server_default="", nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("community", "kind", "record_id"),
    )
    op.create_table(
        "community_words",
        sa.Column("community", sa.Text(), nullable=False),
        sa.Column("item_id", sa.Text(), nullable=False),
        sa.Column("available", sa.Boolean(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=True),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("told_at", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("community", "item_id"),
    )
    op.create_table(
        "community_orders",
        sa.Column("community", sa.Text(), nullable=False),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("order_number", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Integer(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("received_at", sa.Integer(), nullable=False),
        sa.Column("changed_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("community", "order_id"),
    )
    op.create_index(
        "ix_community_orders_received", "community_orders", ["community", "received_at"]
    )
    op.create_table(
        "community_children",
        sa.Column("community", sa.Text(), nullable=False),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=False),
        sa.Column("store_id", sa.Text(), server_default="", nullable=False),
        sa.Column("store_name", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.Text(), server_default="", nullable=False),
        sa.Column("subtotal", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("community", "order_id"),
    )
    op.create_index(
        "ix_community_children_parent", "community_children", ["community", "parent_id"]
    )
    op.create_index("ix_community_children_order", "community_children", ["order_id"])
