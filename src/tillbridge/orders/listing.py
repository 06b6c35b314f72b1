"""Orders as the page shows them: a page of those that are asked for, and one whole."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.operation import Answer
from tillbridge.ledger import orders
from tillbridge.ledger.community import parent_of
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.menu_past import items_then
from tillbridge.ledger.models import OrderRow
from tillbridge.ledger.orders import event_of, read_log
from tillbridge.model.instant import to_iso
from tillbridge.orders import order_part

SEEN = "orders_seen"  # the fact: up to when somebody has looked at new orders (ms)
_NEW_MS = 4 * 3_600_000


def orders_page(connection: Connection, wanted: orders.OrderFilter, page: int, now: int) -> Answer:
    """Return a page of orders, newest first."""
    found = orders.find_page(connection, wanted, page=page)
    # What is older than some hours needs no more noise.
    seen = max(_seen_at(get_fact(connection, "", SEEN)), now - _NEW_MS)
    return {
        "orders": [
            {
                **order_part.order_part(row, found.handled.get(row.order_id)),
                "new": row.received_at > seen,
                **_worth(row),
            }
            for row in found.rows
        ],
        "count": found.count,
        "page": page,
        "pages": max(1, -(-found.count // orders.PER_PAGE)),
        "unseen": orders.received_since(connection, seen, stores=wanted.stores),
    }


def whole_order(connection: Connection, row: OrderRow) -> Answer:
    """Return an order with its lines, what the menu said then, and all that happened to it."""
    entries = read_log(connection, row.store, row.order_id)
    event_id = event_of(entries)
    delivery = orders.delivery_of(connection, row.store, event_id) if event_id else None
    parent = parent_of(connection, row.order_id)
    ordered = order_part.lines_part(row)
    if ordered is not None:
        then = _menu_then(connection, row, ordered["lines"])
        ordered["lines"] = [
            {**line, "menu": menu} for line, menu in zip(ordered["lines"], then, strict=True)
        ]
    return {
        **order_part.order_part(row, orders.handled_entry(connection, row)),
        "may": order_part.may_be_done(row),
        "life": order_part.life_part(row, entries, delivery),
        "delivery": None
        if delivery is None
        else {
            "event_id": delivery.event_id,
            "delivery_id": delivery.delivery_id,
            "received_at": to_iso(delivery.received_at),
        },
        "ordered": ordered,
        "order": json.loads(row.payload) if row.payload else None,
        "community_order": None
        if parent is None
        else {
            "community": parent.community.partition("/")[2],
            "order_id": parent.order_id,
            "order_number": parent.order_number,
            "status": parent.status,
        },
    }


def _menu_then(
    connection: Connection, row: OrderRow, lines: Sequence[Mapping[str, Any]]
) -> list[Answer | None]:
    """Return for each line what the menu said when it was placed; None where it had no such item.

    `name`, `price` (minor units) and `on_sale`.
    """
    ids = {line["external_id"] for line in lines if line["external_id"]}
    then = items_then(connection, row.store, ids, row.placed_at or row.received_at)
    told: list[Answer | None] = []
    for line in lines:
        item = then.get(line["external_id"] or "")
        if item is None:
            told.append(None)
            continue
        variant = next(
            (each for each in item.variants if each.external_id == line["variant"]), None
        )
        told.append(
            {
                "name": item.name,
                "price": item.price if variant is None else variant.price,
                "on_sale": item.available and (variant is None or variant.available),
            }
        )
    return told


def _worth(row: OrderRow) -> Answer:
    ordered = order_part.lines_part(row) or {"lines": (), "total": None, "currency": ""}
    return {
        "items": sum(
            line["quantity"] if isinstance(line["quantity"], int) else 1
            for line in ordered["lines"]
        ),
        "total": ordered["total"],
        "currency": ordered["currency"],
    }


def _seen_at(fact: object) -> int:
    at = fact.get("at") if isinstance(fact, Mapping) else None
    return at if isinstance(at, int) else 0
