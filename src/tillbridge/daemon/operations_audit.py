"""What commands and the page ask about the audit trail."""

from dataclasses import asdict

from tillbridge.core.i18n import _, ngettext
from tillbridge.ledger import audit
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import AuditEntry
from tillbridge.model.instant import to_iso
from tillbridge.web.ports import Answer


class AuditOperations:
    """The operations; both only read."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def list(self, limit: int, *, before: int | None = None) -> Answer:
        """Return the last entries, newest first."""
        found = await self._ledger.read(
            lambda connection: audit.latest(connection, limit + 1, before=before)
        )
        return {"entries": [_listed(each) for each in found[:limit]], "more": len(found) > limit}

    async def verify(self) -> Answer:
        """Walk the whole chain."""
        checked = await self._ledger.read(audit.check)
        answer = {"entries": checked.entries, "head": checked.head, "broken": None}
        if checked.broken is None:
            text = ngettext(
                "The audit trail is whole: {n} entry.",
                "The audit trail is whole: {n} entries.",
                checked.entries,
            ).format(n=checked.entries)
            return {"ok": True, "text": text, **answer}
        text = _("The audit trail is broken at entry {entry}: {why}").format(
            entry=checked.broken.entry, why=checked.broken.text
        )
        fix = _(
            "Somebody changed the ledger by hand, or it was rebuilt. Compare it with the newest "
            "back-up, and with the log's lines audit.noted."
        )
        return {"ok": False, "text": text, "fix": fix, **answer, "broken": asdict(checked.broken)}


def _listed(entry: AuditEntry) -> Answer:
    return {
        "id": entry.id,
        "at": to_iso(entry.at),
        "who": entry.who,
        "role": entry.role,
        "action": entry.action,
        "store": entry.store,
        "target": entry.target,
        "detail": dict(entry.details),
        "hash": entry.hash,
    }
