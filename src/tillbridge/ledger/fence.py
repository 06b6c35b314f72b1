"""The fence: the database refuses a write for a store that another bridge serves.

A trigger of each table compares the lease of each store that a statement has changed with the
holder that the session has declared (`leases.SESSION`). It locks the lease against a take-over
until the transaction ends, so a bridge that was stopped in the middle cannot write afterwards. A
store without a lease, or one that nobody serves, may be written by a session that declares nobody:
a command, or a copy. Free for all: new deliveries, the audit trail, and what is the bridge's own.
"""

from sqlalchemy import Table

from tillbridge.ledger.leases import SESSION
from tillbridge.ledger.models import Delivery, metadata

STATE = "TB001"
"""The SQLSTATE of a refusal."""

_FREE = {"audit", "bridges", "leases", "requests", "secrets"}
_CHANGES = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}

_FUNCTION = """
CREATE OR REPLACE FUNCTION fence_{column}() RETURNS trigger LANGUAGE plpgsql AS $fence$
DECLARE
    mine text := coalesce(current_setting('{session}', true), '');
    changed_store text;
    server text;
BEGIN
    FOR changed_store IN SELECT DISTINCT {column} FROM changed LOOP
        CONTINUE WHEN changed_store = '' OR starts_with(changed_store, 'bridges/');
        SELECT holder INTO server FROM leases WHERE store = changed_store FOR SHARE;
        IF FOUND AND server <> mine THEN
            RAISE EXCEPTION 'another bridge serves %', changed_store USING ERRCODE = '{state}';
        END IF;
    END LOOP;
    RETURN NULL;
END $fence$;
"""
_TRIGGER = """
CREATE OR REPLACE TRIGGER fence_{change} AFTER {change} ON {table}
REFERENCING {rows} TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION fence_{column}();
"""


def fence_sql() -> str:
    """Return the SQL that makes the fence of every table, or makes it anew."""
    functions = {
        column: _FUNCTION.format(column=column, session=SESSION, state=STATE)
        for column in ("store", "community")
    }
    triggers = [
        _TRIGGER.format(table=f'"{table.name}"', column=_column(table), change=change, rows=rows)
        for table in metadata.sorted_tables
        if table.name not in _FREE
        for change, rows in _CHANGES.items()
        if (table.name, change) != (Delivery.__tablename__, "INSERT")
    ]
    return "".join([*functions.values(), *triggers])


def _column(table: Table) -> str:
    """Return the column with the store or the community; StopIteration for a table without one."""
    return next(each.name for each in table.columns if each.name in {"store", "community"})
