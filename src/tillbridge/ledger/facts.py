"""Small facts about a store ("" for the bridge itself): a JSON value under a name."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, overload

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python
from sqlalchemy import Connection, bindparam, delete, func, select
from sqlmodel import col

from tillbridge.core.i18n import MARK, from_plain, to_plain
from tillbridge.ledger.database import upsert
from tillbridge.ledger.models import Fact

T = TypeVar("T")

_adapter = cache(TypeAdapter[Any])
# Made once: making a query costs ten times its execution.
_IS_IT = (col(Fact.store) == bindparam("of_store"), col(Fact.name) == bindparam("of_name"))
_FACT = select(col(Fact.value)).where(*_IS_IT)
_DROPPED = delete(Fact).where(*_IS_IT)


# Facts that all bridges on one ledger share; others of store "" are each bridge's own.
SHARED_FACTS = frozenset({"audit_head", "orders_seen", "problems_acknowledged"})


def own_key(connection: Connection) -> str:
    """Return where rows of the bridge itself (store "") are stored: "", or `bridges/NAME`."""
    return str(connection.get_execution_options().get("own", ""))


def _place(connection: Connection, store: str, name: str) -> str:
    return store if store or name in SHARED_FACTS else own_key(connection)


@overload
def get_fact(connection: Connection, store: str, name: str) -> Any: ...  # noqa: ANN401 -- any JSON value


@overload
def get_fact(connection: Connection, store: str, name: str, kind: type[T]) -> T | None: ...


def get_fact(connection: Connection, store: str, name: str, kind: Any = None) -> Any:
    """Return the fact's value, checked against `kind` if given; None if it is not known.

    A value that does not fit the type was written by another version and counts as unknown.
    """
    place = _place(connection, store, name)
    text = connection.scalar(_FACT, {"of_store": place, "of_name": name})
    if text is None or kind is None:
        return None if text is None else json.loads(text, object_hook=from_plain)
    if MARK in text:  # a type's texts are English
        text = json.dumps(json.loads(text, object_hook=from_plain))
    try:
        return _adapter(kind).validate_json(text)
    except ValidationError:
        return None


def all_facts(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return every fact: by store, then by name."""
    known: dict[str, dict[str, Any]] = {}
    query = select(col(Fact.store), col(Fact.name), col(Fact.value))
    for store, name, value in connection.execute(query):
        known.setdefault(store, {})[name] = json.loads(value, object_hook=from_plain)
    return known


def last_change(connection: Connection) -> int | None:
    """Return when (ms) a fact was last changed, or None."""
    return connection.scalar(select(func.max(col(Fact.at))))


def put_fact(connection: Connection, store: str, name: str, value: object, *, at: int) -> None:
    """Store the fact, a dataclass or plain values, replacing the previous value."""
    plain = to_plain(value)
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, default=to_jsonable_python)
    connection.execute(
        upsert(Fact, "value", "at"),
        {"store": _place(connection, store, name), "name": name, "value": text, "at": at},
    )


def drop_fact(connection: Connection, store: str, name: str) -> None:
    """Delete the fact."""
    place = _place(connection, store, name)
    connection.execute(_DROPPED, {"of_store": place, "of_name": name})


# -- the bridge's addresses: what was observed before a change proves nothing about the new one


ADDRESSES = "addresses"


def note_addresses(connection: Connection, now: Mapping[str, str | None], at_ms: int) -> None:
    """Record each address with the instant (ms) since when it has been in use.

    Unknown addresses (None) stay unchanged; when an address is recorded for the first time,
    everything observed so far counts.
    """
    known = get_fact(connection, "", ADDRESSES)
    after = dict(known) if isinstance(known, dict) else {}
    for name, value in now.items():
        if value is not None and after.get(name, {}).get("value") != value:
            after[name] = {"value": value, "since_ms": at_ms if name in after else 0}
    put_fact(connection, "", ADDRESSES, after, at=at_ms)
