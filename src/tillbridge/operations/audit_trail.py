"""Where what people do is written down, and what the bridge does by itself."""

from tillbridge.core.actor import current_actor
from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.ledger import audit
from tillbridge.ledger.ledger import Ledger

log = get_logger()


class AuditTrail:
    """The audit trail of a ledger."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def note(
        self, action: str, *, store: str = "", target: str = "", ok: bool = True, **detail: object
    ) -> None:
        """Add an entry; the log has its hash too, so that the ledger has a witness.

        Never raises: what was done is done, and the log has a failure.
        """
        doer = current_actor()
        doer.noted = True
        logged = {"ok": ok, **detail}
        role = "" if doer.role is None else doer.role.word
        act = audit.Act(action, doer.who, role, store, target, logged)
        at = self._clock.now_ms()
        try:
            entry = await self._ledger.write(
                lambda connection: audit.append(connection, act, at=at)
            )
        except LedgerError:
            log.error("audit.not_written", action=action, who=doer.who, store=store, target=target)
            return
        log.info(
            "audit.noted",
            entry=entry.id,
            action=action,
            who=doer.who,
            store=store,
            digest=entry.hash,
        )
