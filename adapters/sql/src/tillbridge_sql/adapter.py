"""The adapter: a till whose data is in an SQL database, read by named queries.

It can do what there are queries for. Orders it writes only where the options say so; without that
no connection can change anything.
"""

from collections.abc import Set as AbstractSet
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    AvailabilityReading,
    Catalogue,
    CatalogueChanges,
    Health,
    TablesReading,
)
from tillbridge.adapter.secrets import read_secret
from tillbridge.adapter.sharing import read_shared
from tillbridge.adapter.texts import _
from tillbridge_sql.asking import Asking, offline_as
from tillbridge_sql.changes import Listener
from tillbridge_sql.database import Database, OfflineError, place_of
from tillbridge_sql.menu import read_menu
from tillbridge_sql.news import News
from tillbridge_sql.options import SqlOptions
from tillbridge_sql.orders import Orders
from tillbridge_sql.queries import STEPS, Queries, profile_queries, read_queries
from tillbridge_sql.readings import read_availability, read_tables
from tillbridge_sql.trouble import message_of
from tillbridge_sql.unchanged import MenuMemory

_OF_ORDERS = ("find_order", "find_cancelled", "check_session", "check_item", "check_option", "news")


class SqlAdapter:
    """Reads the menu, what is sold out and the tables; writes orders where it may."""

    def __init__(self, options: SqlOptions, context: AdapterContext) -> None:
        password = (
            None if options.password is None else read_secret(options.password, "password", context)
        )
        place = place_of(options.url, password, context.base_dir, options.dump)
        queries = _queries(options, context.base_dir, place.database)
        _check_sense(options, queries, place.database)
        self._currency = context.currency
        self._sale = options
        self._database = Database(place, timeout_s=options.timeout_s, writes=options.orders)
        self._asking = Asking(self._database, queries, context, tax_included=options.tax_included)
        self._memory = MenuMemory()
        self._listener = Listener(place, options.channel) if options.change == "notify" else None
        if queries.has("items"):
            self.read_catalogue = self._read_catalogue
            self.read_changes = self._read_changes
        if queries.has("availability"):
            self.read_availability = self._read_availability
        if queries.has("tables"):
            self.read_tables = self._read_tables
        if self._listener is not None:
            self.on_change = self._listener.on_change
        if options.orders:
            orders = Orders(self._asking, context.currency, budget_s=2 * options.timeout_s)
            self.write_ticket = orders.write_ticket
            self.find_ticket = orders.find_ticket
            if queries.has("cancel"):
                self.cancel_ticket = orders.cancel_ticket
            if queries.has("news", "news_handled"):
                news = News(self._asking)
                self.read_updates = news.read_updates
                self.update_handled = news.update_handled

    def health(self) -> Health:
        """Return whether the database answers."""
        try:
            self._database.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())
        except OfflineError as offline:
            away = offline_as(offline.error)
            return Health(online=False, detail=away.message, fix=away.fix)
        except SQLAlchemyError as error:
            return Health(
                online=False,
                detail=_("The database refuses the bridge: {detail}").format(
                    detail=message_of(error)
                ),
            )
        return Health(online=True)

    def close(self) -> None:
        """Close the connections."""
        if self._listener is not None:
            self._listener.close()
        self._database.close()

    def _read_catalogue(self) -> Catalogue:
        return self._asking.reading(self._read_menu)

    def _read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        def read(connection: Connection) -> CatalogueChanges:
            mark = self._asking.rows(connection, "fingerprint")
            if mark and (same := self._memory.unchanged(mark, known)) is not None:
                return same
            return self._memory.changes(mark, self._read_menu(connection), known)

        return self._asking.reading(read)

    def _read_menu(self, connection: Connection) -> Catalogue:
        return read_menu(self._asking, connection, self._currency, self._sale)

    def _read_availability(self) -> AvailabilityReading:
        return self._asking.reading(lambda connection: read_availability(self._asking, connection))

    def _read_tables(self) -> TablesReading:
        return self._asking.reading(lambda connection: read_tables(self._asking, connection))


def _queries(options: SqlOptions, base_dir: Path, database: str) -> Queries:
    """Return the profile's queries under those of the file. Raises ValueError."""
    found = Queries({})
    if options.profile is not None:
        found = profile_queries(options.profile, database)
    if options.queries is not None:
        path = base_dir / options.queries
        try:
            text = read_shared(path).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as failure:
            raise ValueError(
                _("{path} cannot be read: {detail}.").format(path=str(path), detail=str(failure))
            ) from failure
        found = read_queries(text, options.queries.name, database).over(found)
    if not options.orders:
        found = found.without((*STEPS, *_OF_ORDERS))
    return found.with_parameters(
        {name.lower(): value for name, value in options.parameters.items()}
    )


def _check_sense(options: SqlOptions, queries: Queries, database: str) -> None:
    """Raise ValueError for options that contradict each other."""
    if not queries.statements:
        raise ValueError(
            _(
                'There is nothing to ask: name a profile, such as profile = "unicenta", or a '
                "file of queries."
            )
        )
    if options.change == "notify" and database != "postgresql":
        raise ValueError(
            _(
                'change = "notify" is PostgreSQL\'s; {database} has none. Write change = "query".'
            ).format(database=database)
        )
    if options.orders and not queries.has("find_order", "order"):
        missing = "order" if queries.has("find_order") else "find_order"
        raise ValueError(
            _(
                "orders = true needs the queries find_order and order, and {missing} is missing."
            ).format(missing=missing)
        )


ADAPTER = Adapter(
    name="sql",
    summary="Tills with an SQL database: uniCenta oPOS, Chromis, Floreant, and others by queries",
    options=SqlOptions,
    open=SqlAdapter,
)
