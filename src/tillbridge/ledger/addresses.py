"""Since when the bridge has its addresses: what was seen before proves nothing of them."""

from collections.abc import Mapping

from sqlalchemy import Connection

from tillbridge.ledger.facts import get_fact, put_fact

FACT = "addresses"


def note_addresses(connection: Connection, now: Mapping[str, str | None], at_ms: int) -> None:
    """Remember each address with the instant (ms) since when it is this one.

    What is not known (None) stays as it was; of an address that is the first of its name all that
    was seen counts.
    """
    known = get_fact(connection, "", FACT)
    after = dict(known) if isinstance(known, dict) else {}
    for name, value in now.items():
        if value is not None and after.get(name, {}).get("value") != value:
            after[name] = {"value": value, "since_ms": at_ms if name in after else 0}
    put_fact(connection, "", FACT, after, at=at_ms)
