"""The mark of a ledger that must not be used: it was copied elsewhere, or is half a copy.

Two ledgers of one shop would both write its orders. The mark is a fact beside those of stores, and
of no bridge, so that it is the same whoever reads it.
"""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete
from sqlmodel import col

from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.ledger.database import upsert
from tillbridge.ledger.models import Fact

PLACE = ("/ledger", "copy")  # of the fact; no store can be called so
_IS_IT = (col(Fact.store) == PLACE[0], col(Fact.name) == PLACE[1])


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
        connection.execute(delete(Fact).where(*_IS_IT))
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
