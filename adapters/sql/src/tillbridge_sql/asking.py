"""Asking the database: a statement's rows, and what goes wrong as the failures the core knows."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tillbridge.adapter import AdapterContext, ExportUnreadable, PosOffline
from tillbridge.adapter.texts import _
from tillbridge.model.money import exponent
from tillbridge_sql.cells import Row
from tillbridge_sql.database import Database, OfflineError
from tillbridge_sql.queries import Queries
from tillbridge_sql.statements import Statement
from tillbridge_sql.trouble import Trouble, is_login_refused, message_of, trouble_of

T = TypeVar("T")

Values = Mapping[str, object]

_LOGIN_FIX = _("Correct the user and the password in the options of the store's adapter.")


class Asking:
    """Runs what only looks, with the parameters that every statement may use."""

    def __init__(
        self, database: Database, queries: Queries, context: AdapterContext, *, tax_included: bool
    ) -> None:
        self.database = database
        self.queries = queries
        self._everywhere: dict[str, object] = {
            **queries.parameters,
            "store": context.store,
            "location_id": context.location_id,
            "currency": context.currency,
            "decimals": exponent(context.currency),
            "tax_included": 1 if tax_included else 0,
        }

    def everywhere(self) -> dict[str, object]:
        """Return the parameters of every statement, as they are now."""
        # Tills keep the time on the wall, without a zone.
        return {**self._everywhere, "now": datetime.now().replace(microsecond=0)}  # noqa: DTZ005 -- as above

    def rows(self, connection: Connection, name: str) -> Sequence[Row]:
        """Return what a query of the menu gives; nothing where there is no such query."""
        statement = self.queries.one(name)
        if statement is None:
            return ()
        try:
            return rows_of(connection, statement, self.everywhere())
        except SQLAlchemyError as error:
            raise StatementFailed(statement, error) from None

    def reading(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` reads. Raises PosOffline, ExportUnreadable."""
        try:
            return self.database.read(work)
        except OfflineError as offline:
            raise offline_as(offline.error) from None
        except StatementFailed as failed:
            if failed.passing:
                raise offline_as(failed.error) from None
            raise ExportUnreadable(
                _("The database refuses the query: {detail}").format(
                    detail=message_of(failed.error)
                ),
                place=failed.statement.place,
                fix=_(
                    "Correct the query, or give the user of the database the right to read there."
                ),
            ) from None
        except SQLAlchemyError as error:
            raise offline_as(error) from None


class StatementFailed(SQLAlchemyError):
    """A statement that failed, and which it was."""

    def __init__(self, statement: Statement, error: SQLAlchemyError) -> None:
        super().__init__()
        self.statement = statement
        self.error = error

    @property
    def passing(self) -> bool:
        """Whether it may be right at the next try."""
        return trouble_of(self.error) in {Trouble.OFFLINE, Trouble.BUSY}


def rows_of(connection: Connection, statement: Statement, values: Values) -> Sequence[Row]:
    """Return a statement's rows, with small column names. Values go to the driver apart."""
    result = connection.execute(
        statement.clause, {name: values[name] for name in statement.parameters}
    )
    if not result.returns_rows:
        return ()
    columns = [name.lower() for name in result.keys()]  # noqa: SIM118 -- a result, no mapping
    return [dict(zip(columns, row, strict=True)) for row in result]


def offline_as(error: SQLAlchemyError) -> PosOffline:
    """Return what the core is told where the database does not answer, or lets nobody in."""
    if is_login_refused(error):
        return PosOffline(
            _("The database refuses the login: {detail}").format(detail=message_of(error)),
            fix=_LOGIN_FIX,
        )
    return PosOffline(_("The database does not answer: {detail}").format(detail=message_of(error)))
