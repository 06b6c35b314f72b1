"""Small facts of a store ("" for the bridge itself): each one a JSON value under a name."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, select
from sqlmodel import col

from tillbridge.ledger.models import Fact, upsert


def get_fact(connection: Connection, store: str, name: str) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the fact's value; None where it is not known."""
    value = connection.scalar(select(col(Fact.value)).filter_by(store=store, name=name))
    return None if value is None else json.loads(value)


def all_facts(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return every fact: by store, then by name."""
    known: dict[str, dict[str, Any]] = {}
    query = select(col(Fact.store), col(Fact.name), col(Fact.value))
    for store, name, value in connection.execute(query):
        known.setdefault(store, {})[name] = json.loads(value)
    return known


def last_change(connection: Connection) -> int | None:
    """Return when (ms) a fact was remembered last; None where there is none."""
    return connection.scalar(select(func.max(col(Fact.at))))


def put_fact(connection: Connection, store: str, name: str, value: Any, *, at: int) -> None:  # noqa: ANN401 -- any JSON value
    """Remember the fact, in place of what was known."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    connection.execute(
        upsert(Fact, "value", "at"), {"store": store, "name": name, "value": text, "at": at}
    )


def drop_fact(connection: Connection, store: str, name: str) -> None:
    """Forget the fact."""
    connection.execute(delete(Fact).filter_by(store=store, name=name))


# -- the addresses of the bridge: what was seen before they changed proves nothing of them


ADDRESSES = "addresses"


def note_addresses(connection: Connection, now: Mapping[str, str | None], at_ms: int) -> None:
    """Remember each address with the instant (ms) since when it is this one.

    What is not known (None) stays as it was; of an address that is the first of its name all that
    was seen counts.
    """
    known = get_fact(connection, "", ADDRESSES)
    after = dict(known) if isinstance(known, dict) else {}
    for name, value in now.items():
        if value is not None and after.get(name, {}).get("value") != value:
            after[name] = {"value": value, "since_ms": at_ms if name in after else 0}
    put_fact(connection, "", ADDRESSES, after, at=at_ms)
