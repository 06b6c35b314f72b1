"""Small facts of a store ("" for the bridge itself): each one a JSON value under a name."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from tillbridge.ledger.schema import facts


def get_fact(connection: Connection, store: str, name: str) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the fact's value; None where it is not known."""
    text = connection.execute(
        select(facts.c.value).where(facts.c.store == store, facts.c.name == name)
    ).scalar()
    return None if text is None else json.loads(text)


def all_facts(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return every fact: by store, then by name."""
    known: dict[str, dict[str, Any]] = {}
    for store, name, value in connection.execute(
        select(facts.c.store, facts.c.name, facts.c.value)
    ):
        known.setdefault(store, {})[name] = json.loads(value)
    return known


def put_fact(connection: Connection, store: str, name: str, value: Any, *, at: int) -> None:  # noqa: ANN401 -- any JSON value
    """Remember the fact, in place of what was known."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    statement = insert(facts).values(store=store, name=name, value=text, at=at)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[facts.c.store, facts.c.name],
            set_={"value": statement.excluded.value, "at": statement.excluded.at},
        )
    )


def drop_fact(connection: Connection, store: str, name: str) -> None:
    """Forget the fact."""
    connection.execute(delete(facts).where(facts.c.store == store, facts.c.name == name))


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
