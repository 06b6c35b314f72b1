"""For how long no bridge has run, as far as the ledger can tell."""

from sqlalchemy import Connection

from tillbridge.ledger.facts import get_fact


def absent_s(connection: Connection, *, store: str, now_ms: int) -> float:
    """Return for how many seconds nobody received deliveries before this start; 0 at the first.

    A bridge that was killed left no word: then its last contact with the service counts.
    """
    running = get_fact(connection, "", "running") or {}
    contact = get_fact(connection, store, "service_contact") or {}
    known = [
        at
        for at in (running.get("stopped_at"), running.get("started_at"), contact.get("ok_at"))
        if isinstance(at, int)
    ]
    return max(0.0, (now_ms - max(known)) / 1000) if known else 0.0
