"""Small facts about a store ("" for the bridge itself): a JSON value under a name."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, overload

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python
from sqlalchemy import Connection, bindparam, delete, func, select
from sqlmodel import col

from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import MARK, _, from_plain, to_plain
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


def facts_named(connection: Connection, name: str) -> dict[str, Any]:
    """Return the fact of this name of each store that has it, and of the bridge itself."""
    own = own_key(connection)
    query = select(col(Fact.store), col(Fact.value)).where(col(Fact.name) == name)
    return {
        "" if store == own else store: json.loads(value, object_hook=from_plain)
        for store, value in connection.execute(query)
    }


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


def hold_fact(connection: Connection, store: str, name: str, *, at: int) -> None:
    """Let other bridges wait for the commit before they hold this fact, even if it is not known.

    Call it before the fact is read in order to be changed.
    """
    place = _place(connection, store, name)
    held = {"store": place, "name": name, "value": "null", "at": at}
    connection.execute(upsert(Fact, "at"), held)


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


# -- The mark of a ledger that must not be used: it was copied elsewhere, or is half a copy.
#
# Two ledgers of one shop would both write its orders. The mark is a fact beside those of stores,
# and of no bridge, so that it is the same whoever reads it.


PLACE = ("/ledger", "copy")  # of the fact; no store can be called so
_IS_MARK = (col(Fact.store) == PLACE[0], col(Fact.name) == PLACE[1])


def mark_of(connection: Connection) -> Mapping[str, Any]:
    """Return the mark: `id` of the copy, and `moved_to` or `copied_from`; empty without one."""
    # As text, since every start of a bridge asks: making a query takes longer than running it.
    query = f"SELECT value FROM facts WHERE store = '{PLACE[0]}' AND name = '{PLACE[1]}'"  # noqa: S608 -- our own words
    value = connection.exec_driver_sql(query).scalar()
    found: Mapping[str, Any] = json.loads(value) if value else {}
    return found


def put_mark(connection: Connection, mark: Mapping[str, Any], *, at: int) -> None:
    """Mark the ledger; an empty mark takes it off."""
    if not mark:
        connection.execute(delete(Fact).where(*_IS_MARK))
        return
    store, name = PLACE
    row = {"store": store, "name": name, "value": json.dumps(mark), "at": at}
    connection.execute(upsert(Fact, "value", "at"), row)


def refuse_marked(connection: Connection) -> None:
    """Raise ConfigError for a ledger that must not be used."""
    mark = mark_of(connection)
    if "moved_to" in mark:
        raise ConfigError(
            _("This database was copied to {place}, which counts from then on.").format(
                place=mark["moved_to"]
            ),
            fix=_(
                "Set url in [ledger] to that one, or remove it if that is the data folder. To go "
                "back, do so and then copy: tillbridge ledger copy. If it is lost, restore a "
                "backup: tillbridge restore"
            ),
        )
    if "copied_from" in mark:
        raise ConfigError(
            _("This database is an unfinished copy of {place}.").format(place=mark["copied_from"]),
            fix=_(
                "Finish it: set url in [ledger] as before, and run “tillbridge ledger copy” again."
            ),
        )
