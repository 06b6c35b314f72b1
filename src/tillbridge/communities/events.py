"""What a community's event says, and what is to be done about it. Pure.

Specification: Community envelope. Events come twice, late and out of order: each is retried for
nine hours by itself. Where an event does not simply go on from what is known, the order is read.
"""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tillbridge.core.errors import Refused
from tillbridge.ledger.community import KnownParent
from tillbridge.model.community import ParentOrder
from tillbridge.model.instant import from_iso
from tillbridge.model.numbers import parse_finite_float
from tillbridge.service.community_reading import read_parent

CREATED = "order.created"
STATUS_CHANGED = "order.status_changed"

_LATE_MS = 60_000


@dataclass(frozen=True, slots=True)
class OrderTold:
    """An event about a parent order. `sent_at` (ms) is None where the envelope tells none."""

    event_type: str
    order: ParentOrder
    previous_status: str
    sent_at: int | None


@dataclass(frozen=True, slots=True)
class Other:
    """An event that is about nothing that is kept here, a test for example."""

    event_type: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event about an order that cannot be told from it."""

    event_type: str
    text: str


class Settling(Enum):
    """What is to be done about an order that an event tells of."""

    TAKE = "taken"
    KNOWN = "known"
    READ = "read"


def read_event(event_type: str, body: bytes) -> OrderTold | Other | Unreadable:
    """Return what the delivery says. Never raises, whatever the body is."""
    if event_type not in {CREATED, STATUS_CHANGED}:
        return Other(event_type)
    try:
        envelope = json.loads(body, parse_float=parse_finite_float)
        data = envelope["data"]
        order = read_parent(data.get("order", data), f"the event {event_type}")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return Unreadable(event_type, "no order in it")
    except Refused as failure:
        return Unreadable(event_type, failure.text)
    previous = data.get("previous_status")
    return OrderTold(
        event_type,
        order,
        previous if isinstance(previous, str) else "",
        _instant(envelope.get("timestamp")),
    )


def settle(known: KnownParent | None, event: OrderTold, *, received_at: int) -> Settling:
    """Decide: take the event's order, know it already, or read the order, which has the last word.

    Taken is what is new and in time, and a change that begins where the order is known to be.
    """
    late = event.sent_at is not None and received_at - event.sent_at > _LATE_MS
    if known is None:
        fresh = event.event_type == CREATED and not late
        return Settling.TAKE if fresh else Settling.READ
    now = event.order
    if (now.status, now.updated_at) == (known.status, known.updated_at):
        return Settling.KNOWN
    goes_on = (
        event.event_type == STATUS_CHANGED
        and event.previous_status == known.status
        and not late
        and now.updated_at is not None
        and (known.updated_at is None or now.updated_at >= known.updated_at)
    )
    return Settling.TAKE if goes_on else Settling.READ


def _instant(value: Any) -> int | None:  # noqa: ANN401 -- any JSON value
    try:
        return from_iso(value) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
