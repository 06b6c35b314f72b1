"""Orders of a community: events taken out of the inbox, children tied to the stores' POS orders.

Specification: Community envelope. The tickets are the children's: each arrives as an ordinary order
of its store. Stored here is what they are parts of, and missing ones are reported. Events come
twice, late and out of order: each is retried for nine hours by itself. Where an event does not
simply go on from what is known, the order is read.
"""

import json
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import Connection

from tillbridge.communities import CommunityContext
from tillbridge.core.errors import Refused, ServiceError
from tillbridge.core.log import get_logger
from tillbridge.core.problems import Found
from tillbridge.ledger import orders
from tillbridge.ledger.community import TiedChild, counted, get_parent, put_parent, tied_children
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.models import CommunityOrder, Delivery
from tillbridge.model.community import FINAL, ParentOrder
from tillbridge.model.lenient import instant
from tillbridge.model.numbers import parse_finite_float
from tillbridge.service.types import read

log = get_logger()

_BATCH = 64
_MISSING = "community.order_missing"
CREATED = "order.created"
STATUS_CHANGED = "order.status_changed"

_LATE_MS = 60_000


@dataclass(frozen=True, slots=True)
class OrderEvent:
    """An event about a parent order. `sent_at` (ms) is None if the envelope has none."""

    event_type: str
    order: ParentOrder
    previous_status: str
    sent_at: int | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event about an order that cannot be read from it."""

    text: str


class Resolution(Enum):
    """What is to be done about the order of an event."""

    TAKE = "taken"
    KNOWN = "known"
    READ = "read"


def read_event(event_type: str, body: bytes) -> OrderEvent | Unreadable | None:
    """Return what the delivery says; None: nothing that is stored here. Never raises."""
    if event_type not in {CREATED, STATUS_CHANGED}:
        return None
    try:
        envelope = json.loads(body, parse_float=parse_finite_float)
        data = envelope["data"]
        order = read(ParentOrder, data.get("order", data), f"the event {event_type}")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return Unreadable("no order in it")
    except Refused as failure:
        return Unreadable(failure.text)
    previous = data.get("previous_status")
    return OrderEvent(
        event_type,
        order,
        previous if isinstance(previous, str) else "",
        instant(envelope.get("timestamp")),
    )


def settle(known: CommunityOrder | None, event: OrderEvent, *, received_at: int) -> Resolution:
    """Decide: take the event's order, know it already, or read the order, which decides.

    Taken is what is new and in time, and a change that begins where the order is known to be.
    """
    late = event.sent_at is not None and received_at - event.sent_at > _LATE_MS
    if known is None:
        fresh = event.event_type == CREATED and not late
        return Resolution.TAKE if fresh else Resolution.READ
    now = event.order
    if (now.status, now.updated_at) == (known.status, known.updated_at):
        return Resolution.KNOWN
    goes_on = (
        event.event_type == STATUS_CHANGED
        and event.previous_status == known.status
        and not late
        and now.updated_at is not None
        and (known.updated_at is None or now.updated_at >= known.updated_at)
    )
    return Resolution.TAKE if goes_on else Resolution.READ


class ParentOrders:
    """Keeps the parent orders of one community."""

    def __init__(self, context: CommunityContext) -> None:
        self._context = context

    async def process_deliveries(self) -> None:
        """Handle every open delivery. Raises ServiceError if an order could not be read.

        Such a delivery stays open; the others are handled anyway.
        """
        failure: ServiceError | None = None
        after = 0
        context = self._context
        while batch := await context.bridge.ledger.read(
            orders.open_deliveries, _BATCH, store=context.key, after=after
        ):
            for each in batch:
                after = each.id
                try:
                    await self._handle(each)
                except ServiceError as trouble:
                    failure = trouble
        if failure is not None:
            raise failure

    async def look_for_children(self) -> None:
        """Report child orders of our stores that have not arrived. Raises LedgerError."""
        context = self._context
        ours = set(context.service_ids.values())
        before = context.bridge.clock.now_ms() - int(context.settings.child_within_s * 1000)
        tied = await context.bridge.ledger.read(tied_children, community=context.key)
        missing = [each.child for each in tied if is_missing(each, ours, before=before)]
        found = [
            Found(_MISSING, each.order_id, {"order": each.order_id, "parent": each.parent_id})
            for each in missing
        ]
        context.report(_MISSING, None, *found)

    # -- inside

    async def _handle(self, delivery: Delivery) -> None:
        """Store what the delivery says of an order, and mark it handled."""
        context, outcome = self._context, "kept"
        name, order = context.name, None
        match read_event(delivery.event_type, delivery.body):
            case OrderEvent() as event:
                outcome, order = await self._settle(event, delivery.received_at)
            case Unreadable(text):
                outcome = "unreadable"
                log.error(
                    "community.event_unreadable",
                    community=name,
                    event_type=delivery.event_type,
                    event_id=delivery.event_id,
                    detail=text,
                )
            case None:
                kind = delivery.event_type
                log.info("community.event_kept", community=name, event_type=kind)
        at = context.bridge.clock.now_ms()

        def write(connection: Connection) -> None:
            if order is not None:
                put_parent(connection, context.key, order, at=at)
                put_fact(connection, context.key, "orders", counted(connection, context.key), at=at)
            orders.handled(connection, delivery.id, outcome, at)

        await context.bridge.ledger.write(write)
        if order is not None:
            log.info(
                "community.order",
                community=name,
                order_id=order.order_id,
                status=order.status,
                settled=outcome,
                children=[each.order_id for each in order.children],
            )

    async def _settle(self, event: OrderEvent, received_at: int) -> tuple[str, ParentOrder | None]:
        """Return what came of the event, and the order that is to be stored."""
        context, order_id = self._context, event.order.order_id
        known = await context.bridge.ledger.read(get_parent, context.key, order_id)
        resolution = settle(known, event, received_at=received_at)
        if resolution is not Resolution.READ:
            return resolution.value, event.order if resolution is Resolution.TAKE else None
        try:
            return "read", await context.calls.order(order_id)
        except Refused as failure:
            if failure.status != 404:
                raise
            # The service does not know it any more: what the event holds is all there is.
            log.warning("community.order_gone", community=context.name, order_id=order_id)
            return "gone", event.order if known is None else None


def is_missing(each: TiedChild, ours: set[str], *, before: int) -> bool:
    """Whether a child order should be here and is not: ours, known of since `before`. Pure."""
    return (
        each.child.store_id in ours
        and each.local_store is None
        and each.child.status not in FINAL
        and each.parent_received_at <= before
    )
