"""Orders of a community: events taken out of the inbox, children tied to the stores' POS orders.

The tickets are the children's: each arrives as an ordinary order of its store. Here is kept what
they are parts of, and seen that none is missing.
"""

from sqlalchemy import Connection

from tillbridge.communities.events import (
    OrderTold,
    Other,
    Settling,
    Unreadable,
    read_event,
    settle,
)
from tillbridge.communities.shared import Shared
from tillbridge.core.errors import Refused, ServiceError
from tillbridge.core.log import get_logger
from tillbridge.ledger import inbox
from tillbridge.ledger.community import (
    TiedChild,
    counted,
    get_parent,
    put_parent,
    tied_children,
)
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.inbox import OpenDelivery
from tillbridge.model.community import FINAL, ParentOrder

log = get_logger()

_BATCH = 64
_MISSING = "community.order_missing"


class Parents:
    """Keeps the parent orders of one community."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def take_in(self) -> None:
        """Handle every open delivery. Raises ServiceError where an order could not be read.

        Such a delivery stays open; the others are handled all the same.
        """
        failure: ServiceError | None = None
        after = 0
        while batch := await self._open(after):
            for each in batch:
                after = each.id
                try:
                    await self._handle(each)
                except ServiceError as trouble:
                    failure = trouble
        if failure is not None:
            raise failure

    async def look_for_children(self) -> None:
        """Tell of child orders of our stores that have not arrived. Raises LedgerError."""
        shared = self._shared
        ours = set(shared.service_ids.values())
        now = shared.clock.now_ms()
        before = now - int(shared.settings.child_within_s * 1000)

        def read(connection: Connection) -> list[TiedChild]:
            return tied_children(connection, shared.key)

        missing = {
            each.child.order_id: each
            for each in await shared.ledger.read(read)
            if is_missing(each, ours, before=before)
        }
        for problem in shared.desk.current():
            if (
                problem.code == _MISSING
                and problem.store == shared.key
                and problem.subject not in missing
            ):
                shared.desk.close(_MISSING, shared.key, problem.subject)
        for order_id, each in missing.items():
            shared.desk.open(_MISSING, shared.key, order_id, order=order_id, parent=each.parent_id)

    # -- inside

    async def _open(self, after: int) -> list[OpenDelivery]:
        key = self._shared.key
        return await self._shared.ledger.read(
            lambda connection: inbox.open_deliveries(connection, _BATCH, store=key, after=after)
        )

    async def _handle(self, open_delivery: OpenDelivery) -> None:
        delivery = open_delivery.delivery
        outcome: str = "kept"
        order: ParentOrder | None = None
        match read_event(delivery.event_type, delivery.body):
            case OrderTold() as event:
                outcome, order = await self._settle(event, delivery.received_at)
            case Unreadable(event_type, text):
                outcome = "unreadable"
                log.error(
                    "community.event_unreadable",
                    community=self._shared.name,
                    event_type=event_type,
                    event_id=delivery.event_id,
                    detail=text,
                )
            case Other(event_type):
                log.info("community.event_kept", community=self._shared.name, event_type=event_type)
        await self._finish(open_delivery.id, outcome, order)

    async def _settle(self, event: OrderTold, received_at: int) -> tuple[str, ParentOrder | None]:
        shared = self._shared
        order_id = event.order.order_id
        known = await shared.ledger.read(
            lambda connection: get_parent(connection, shared.key, order_id)
        )
        match settle(known, event, received_at=received_at):
            case Settling.KNOWN:
                return "known", None
            case Settling.TAKE:
                return "taken", event.order
            case Settling.READ:
                try:
                    return "read", await shared.calls.order(order_id)
                except Refused as failure:
                    if failure.status != 404:
                        raise
                    # The service does not know it any more: what the event tells is all there is.
                    log.warning("community.order_gone", community=shared.name, order_id=order_id)
                    return "gone", event.order if known is None else None

    async def _finish(self, delivery: int, outcome: str, order: ParentOrder | None) -> None:
        shared = self._shared
        at = shared.clock.now_ms()

        def write(connection: Connection) -> None:
            if order is not None:
                put_parent(connection, shared.key, order, at=at)
                put_fact(connection, shared.key, "orders", counted(connection, shared.key), at=at)
            inbox.handled(connection, delivery, outcome, at)

        await shared.ledger.write(write)
        if order is not None:
            log.info(
                "community.order",
                community=shared.name,
                order_id=order.order_id,
                status=order.status,
                settled=outcome,
                children=[each.order_id for each in order.children],
            )


def is_missing(each: TiedChild, ours: set[str], *, before: int) -> bool:
    """Whether a child order should be here and is not: ours, known of since `before`. Pure."""
    return (
        each.child.store_id in ours
        and each.local_store is None
        and each.child.status not in FINAL
        and each.parent_received_at <= before
    )
