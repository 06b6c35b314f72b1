"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "facts",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("store", "name"),
    )
    op.create_table(
        "holds",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("approved_digest", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("store"),
    )
    op.create_table(
        "inbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("delivery_id", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("received_at", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("handled_at", sa.Integer(), nullable=True),
        sa.Column("outcome", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("store", "event_id", name="uq_inbox_event"),
    )
    op.create_index("ix_inbox_open", "inbox", ["id"], sqlite_where=sa.text("handled_at IS NULL"))

    op.create_table(
        "menu_items",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Integer(), nullable=True),
        sa.Column("pos_available", sa.Boolean(), nullable=False),
        sa.Column("overlaid", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("store", "external_id"),
    )
    op.create_index("ix_menu_items_fingerprint", "menu_items", ["store", "fingerprint"])
    op.create_index(
        "ix_menu_items_overlaid", "menu_items", ["store"], sqlite_where=sa.text("overlaid")
    )

    op.create_table(
        "menu_parts",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("store", "kind", "external_id"),
    )
    op.create_table(
        "menu_prices",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("from_ms", sa.Integer(), nullable=False),
        sa.Column("price", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("store", "external_id", "from_ms"),
    )
    op.create_table(
        "menu_refused",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("store", "external_id"),
    )
    op.create_table(
        "order_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_order_log_order", "order_log", ["store", "order_id", "id"])

    op.create_table(
        "orders",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("order_number", sa.Text(), server_default="", nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("placed_at", sa.Integer(), nullable=True),
        sa.Column("received_at", sa.Integer(), nullable=False),
        sa.Column("ticket", sa.Text(), nullable=False),
        sa.Column("ticket_reference", sa.Text(), server_default="", nullable=False),
        sa.Column("written_at", sa.Integer(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_failure", sa.Text(), server_default="", nullable=False),
        sa.Column("wanted", sa.Text(), nullable=False),
        sa.Column("told", sa.Text(), nullable=False),
        sa.Column("reason_code", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), server_default="", nullable=False),
        sa.Column("closed_at", sa.Integer(), nullable=True),
        sa.Column("updated_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("store", "order_id"),
    )
    op.create_index(
        "ix_orders_open",
        "orders",
        ["store", "received_at"],
        sqlite_where=sa.text("closed_at IS NULL"),
    )
    op.create_index("ix_orders_received", "orders", ["received_at"])
    op.create_index("ix_orders_told", "orders", ["store", "told"])

    op.create_table(
        "overrides",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=True),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("store", "external_id"),
    )
    op.create_table(
        "problems",
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), server_default="", nullable=False),
        sa.Column("since", sa.Integer(), nullable=False),
        sa.Column("detail", sa.Text(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("code", "store", "subject"),
    )
    op.create_table(
        "pushes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Integer(), nullable=False),
        sa.Column("finished_at", sa.Integer(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), server_default="{}", nullable=False),
        sa.Column("message", sa.Text(), server_default="", nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("poll_url", sa.Text(), nullable=True),
        sa.Column("pending", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_pushes_running", "pushes", ["store"], sqlite_where=sa.text("state = 'running'")
    )
    op.create_index("ix_pushes_started", "pushes", ["started_at"])

    op.create_table(
        "tables",
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("seats", sa.Integer(), nullable=True),
        sa.Column("zone", sa.Text(), server_default="", nullable=False),
        sa.Column("table_id", sa.Text(), server_default="", nullable=False),
        sa.Column("qr_token", sa.Text(), server_default="", nullable=False),
        sa.Column("qr_url", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("store", "external_id"),
    )
