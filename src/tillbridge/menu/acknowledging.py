"""Writing down what the service accepted, in portions (invariant 3)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from tillbridge.ledger import menu
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.menu import clear_refusals
from tillbridge.ledger.menu_codec import AcceptedItem
from tillbridge.menu.compare import Record
from tillbridge.menu.pending import Pending
from tillbridge.menu.plan import PatchItem, PushBatch, PushFull
from tillbridge.model.catalogue import Item

T = TypeVar("T")

PORTION = 1000  # items acknowledged in one commit: a delivery must not wait long for its own


async def acknowledge(ledger: Ledger, store: str, told: Pending, *, at: int) -> None:
    """Write down what the service accepted: `told.ids` are removed, items and parts are there."""
    for portion in portions(told.items, PORTION):
        await ledger.write(partial(_acknowledge_items, store, portion, at))

    def rest(connection: Connection) -> None:
        menu.acknowledge_parts(connection, store, told.parts, at=at)
        menu.forget_items(connection, store, told.ids, at=at)
        clear_refusals(connection, store, told.ids)

    await ledger.write(rest)


def portions(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the values in portions of at most `size`."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


async def doubt(ledger: Ledger, store: str, external_ids: Sequence[str]) -> None:
    """Write down that nobody knows what the service has of these items."""
    for portion in portions(external_ids, PORTION):
        await ledger.write(partial(_doubt_items, store, portion))


async def refresh(ledger: Ledger, store: str, accepted: Sequence[AcceptedItem]) -> None:
    """Write down other records for items whose content the service has already."""
    for portion in portions(accepted, PORTION):
        await ledger.write(partial(_refresh_items, store, portion))


def pending_of(step: PushFull | PushBatch | PatchItem, records: Mapping[str, Record]) -> Pending:
    """Return what is acknowledged once the step is accepted."""
    match step:
        case PushFull():
            return Pending((), tuple(_accepted(step.items, records)), step.parts)
        case PushBatch():
            items = (*step.add, *step.update)
            return Pending(step.delete, tuple(_accepted(items, records)), step.parts)
        case PatchItem():
            return Pending((), tuple(_accepted((step.item,), records)))


def _accepted(items: Sequence[Item], records: Mapping[str, Record]) -> Iterator[AcceptedItem]:
    for item in items:
        record = records[item.external_id]
        yield AcceptedItem.of(item, record.from_export, record.fingerprint)


def availability_told(
    connection: Connection, store: str, told: Mapping[str, Item], *, at: int
) -> None:
    """Acknowledge availability alone: where the items come from stays as it is."""
    known = menu.items_by_id(connection, store, told)
    menu.change_items(
        connection,
        store,
        [
            replace(each, item=_with_availability(each.item, told[external_id]))
            for external_id, each in known.items()
        ],
        at=at,
    )


def availability_read(
    connection: Connection,
    store: str,
    told: Mapping[str, Item],
    records: Mapping[str, Record],
    *,
    at: int,
) -> None:
    """Acknowledge availability told from a reading of the export.

    Where other changes of the item still wait, its record is left open, so that each reading
    tells it anew.
    """
    accepted = []
    for external_id, known in menu.items_by_id(connection, store, told).items():
        item, record = told[external_id], records[external_id]
        if _with_availability(known.item, item) == item:
            now = AcceptedItem.of(item, record.from_export, record.fingerprint)
        else:
            said = _with_availability(known.pos_item, record.from_export)
            now = AcceptedItem.of(_with_availability(known.item, item), said, None)
        accepted.append(replace(now, doubtful=known.doubtful))
    menu.change_items(connection, store, accepted, at=at)


def _with_availability(item: Item, other: Item) -> Item:
    return replace(item, available=other.available, snooze_until=other.snooze_until)


def _acknowledge_items(
    store: str, accepted: Sequence[AcceptedItem], at: int, connection: Connection
) -> None:
    menu.acknowledge_items(connection, store, accepted, at=at)


def _doubt_items(store: str, external_ids: Sequence[str], connection: Connection) -> None:
    menu.mark_unconfirmed(connection, store, external_ids)


def _refresh_items(store: str, accepted: Sequence[AcceptedItem], connection: Connection) -> None:
    menu.refresh_items(connection, store, accepted)
