"""How orders of ours go on in Odoo, which keeps a state and no news: it is looked at each time.

| in Odoo | written as draft | written as paid |
| sent to the kitchen | preparing | preparing |
| paid | completed | accepted |
| posted, invoiced | completed | completed |
| cancelled, or a draft deleted | rejected | rejected |
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from tillbridge.adapter import RejectReason, TicketStatus, TicketUpdate
from tillbridge_odoo.failures import asking
from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.options import OdooOptions
from tillbridge_odoo.reference import Reference, key_in
from tillbridge_odoo.register import text

_ORDER = "pos.order"
_FOLLOWED = timedelta(days=2)
_PREPARATION = "last_order_preparation_change"


class Updates:
    """The news of orders that Odoo has, each told until it is handled."""

    def __init__(self, odoo: Odoo, options: OdooOptions) -> None:
        self._odoo = odoo
        self._options = options
        self._handled: set[str] = set()
        self._drafts: frozenset[str] = frozenset()

    def read(self) -> Sequence[TicketUpdate]:
        """Return what is not handled yet, oldest order first. Raises PosOffline."""
        with asking():
            records = self._records()
            prepared = self._prepared(records)
            gone = [key for key in sorted(self._drafts - records.keys()) if self._is_gone(key)]
        found = []
        for key, record in records.items():
            status = _status(record["state"], paid=self._options.orders == "paid")
            if status in {None, TicketStatus.ACCEPTED} and record["id"] in prepared:
                status = TicketStatus.PREPARING
            if status is not None:
                found.append(_update(key, status, "It was cancelled in Odoo."))
        found += [_update(key, TicketStatus.REJECTED, "It was deleted in Odoo.") for key in gone]
        drafts = {key for key, record in records.items() if record["state"] == "draft"}
        told = {update.order_id for update in found if update.key in self._handled}
        self._drafts = frozenset(drafts | (set(gone) - told))
        return [update for update in found if update.key not in self._handled]

    def handled(self, update: TicketUpdate) -> None:
        """Take note that a piece of news is kept."""
        self._handled.add(update.key)

    def _records(self) -> dict[str, Record]:
        """Return the first order of each key; refunds have their order's receipt number."""
        word = self._options.reference
        since = (datetime.now(UTC) - _FOLLOWED).strftime("%Y-%m-%d %H:%M:%S")
        found: dict[str, Record] = {}
        for record in self._odoo.read(
            _ORDER,
            [["pos_reference", "=like", f"{word} %"], ["create_date", ">=", since]],
            ["pos_reference", "state"],
        ):
            key = key_in(text(record["pos_reference"]), word)
            if key is not None:
                found.setdefault(key, record)
        return found

    def _prepared(self, records: Mapping[str, Record]) -> set[int]:
        """Return the drafts whose lines have been sent to the kitchen."""
        open_ = [each["id"] for each in records.values() if each["state"] in {"draft", "paid"}]
        if not open_:
            return set()
        found = self._odoo.read_ids(_ORDER, open_, [_PREPARATION])
        return {each for each, record in found.items() if _is_sent(text(record.get(_PREPARATION)))}

    def _is_gone(self, key: str) -> bool:
        reference = Reference(self._options.reference, key)
        domain = [["pos_reference", "=", reference.text]]
        return not self._odoo.read(_ORDER, domain, ["state"], limit=1)


def _status(state: object, *, paid: bool) -> TicketStatus | None:
    match state:
        case "paid":
            return TicketStatus.ACCEPTED if paid else TicketStatus.COMPLETED
        case "done" | "invoiced":
            return TicketStatus.COMPLETED
        case "cancel":
            return TicketStatus.REJECTED
        case _:
            return None


def _update(key: str, status: TicketStatus, why: str) -> TicketUpdate:
    rejected = status is TicketStatus.REJECTED
    return TicketUpdate(
        key=f"{key} {status}",
        order_id=key,
        status=status,
        reason=RejectReason.OTHER if rejected else None,
        message=why if rejected else "",
    )


def _is_sent(changes: str) -> bool:
    """Return whether the last preparation names lines: by key in 17, under `lines` since."""
    try:
        said = json.loads(changes or "{}")
    except ValueError:
        return False
    if not isinstance(said, dict):
        return False
    lines = said.get("lines", said)
    return isinstance(lines, dict) and bool(lines)
