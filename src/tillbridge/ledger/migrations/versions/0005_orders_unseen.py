"""What the service refused of an order, and what of it no person has seen yet."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

# Problems that follow from `unseen` now, where they were kept by themselves before.
_MOVED = (
    "order.unknown_item",
    "order.price_differs",
    "order.not_withdrawn",
    "order.closed_by_service",
)


def upgrade() -> None:
    for name in ("refused", "unseen"):
        op.add_column("orders", sa.Column(name, sa.Text(), nullable=False, server_default="{}"))
    op.create_index("ix_orders_number", "orders", ["order_number"])
    op.create_index("ix_orders_unseen", "orders", ["store"], sqlite_where=sa.text("unseen <> '{}'"))
    _move_open_problems()


def _move_open_problems() -> None:
    connection = op.get_bind()
    rows = connection.execute(
        sa.text("SELECT code, store, subject, since, detail FROM problems ORDER BY since")
    ).all()
    unseen: dict[tuple[str, str], dict[str, object]] = {}
    for row in rows:
        if row.code in _MOVED:
            what = {"at": row.since, "detail": json.loads(row.detail).get("detail", "")}
            unseen.setdefault((row.store, row.subject), {})[row.code] = what
    for (store, order_id), what in unseen.items():
        connection.execute(
            sa.text("UPDATE orders SET unseen = :what WHERE store = :store AND order_id = :id"),
            {"what": json.dumps(what, sort_keys=True), "store": store, "id": order_id},
        )
