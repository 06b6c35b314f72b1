"""What a running push carries, as the ledger's text: what is acknowledged when its job succeeds.

One JSON array a line, so that a menu of 20,000 items is never encoded or decoded in one go (which
would hold the interpreter, and with it the event loop).
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tillbridge.ledger import menu_codec
from tillbridge.ledger.menu_codec import AcceptedItem, Parts, decode_accepted, encode_accepted

_PART_KINDS = {
    "categories": menu_codec.category_from,
    "add_ons": menu_codec.add_on_from,
    "addon_groups": menu_codec.addon_group_from,
    "menus": menu_codec.menu_from,
}


@dataclass(frozen=True, slots=True)
class Pending:
    """What a push tells: ids of items, and for a job the items and parts themselves."""

    ids: tuple[str, ...] = ()
    items: tuple[AcceptedItem, ...] = ()
    parts: Parts = field(default_factory=Parts)

    @property
    def all_ids(self) -> frozenset[str]:
        """The ids of everything told."""
        return frozenset(self.ids) | {each.item.external_id for each in self.items}


def pending_text(pending: Pending) -> str:
    """Return the ledger's text."""
    return "\n".join(_lines(pending))


def pending_from(text: str) -> Pending:
    """Return what `pending_text` wrote."""
    ids: list[str] = []
    items: list[AcceptedItem] = []
    parts: dict[str, dict[str, Any]] = {kind: {} for kind in _PART_KINDS}
    for line in text.splitlines():
        kind, *values = json.loads(line)
        if kind == "id":
            ids.append(values[0])
        elif kind == "item":
            body, fingerprint, pos_available = values
            items.append(decode_accepted(body, fingerprint, pos_available=pos_available))
        else:
            part: Any = _PART_KINDS[kind](values[0])
            parts[kind][part.external_id] = part
    return Pending(tuple(ids), tuple(items), Parts(**parts))


def _lines(pending: Pending) -> Iterator[str]:
    yield from _each(["id", external_id] for external_id in pending.ids)
    for accepted in pending.items:
        row = encode_accepted(accepted)
        yield json.dumps(["item", row["body"], row["fingerprint"], row["pos_available"]])
    for kind in _PART_KINDS:
        yield from _each(
            [kind, menu_codec.part_text(part)] for part in getattr(pending.parts, kind).values()
        )


def _each(rows: Iterable[list[str]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row)
