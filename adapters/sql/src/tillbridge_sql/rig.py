"""A till for the conformance suite: a database on a real server, behind a line that can fail."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from tillbridge.adapter import Adapter, Item, RejectReason, Table, TicketStatus
from tillbridge.adapter.conformance import CannotDo, Rig, RigTicket
from tillbridge.model.money import to_major
from tillbridge_sql.adapter import ADAPTER
from tillbridge_sql.rig_servers import PASSWORD, NoServer, Server, mariadb, postgresql
from tillbridge_sql.rig_wire import Wire

_SCHEMA = """
CREATE TABLE items (id varchar(60) PRIMARY KEY, name varchar(255) NOT NULL,
                    price decimal(14, 3) NOT NULL, place int NOT NULL, sold_out int DEFAULT 0);
CREATE TABLE places (id varchar(60) PRIMARY KEY, name varchar(255), seats int, zone varchar(255));
CREATE TABLE sessions (id int PRIMARY KEY, closed_at timestamp NULL);
INSERT INTO sessions (id) VALUES (1);
CREATE TABLE orders (number {serial}, order_key varchar(120) NOT NULL UNIQUE, session int,
                     note varchar(1000), total decimal(14, 3), placed_at timestamp NULL,
                     cancelled int DEFAULT 0);
CREATE TABLE order_lines (number int, line_row int, item varchar(60) REFERENCES items (id),
                          name varchar(255), quantity int, price decimal(14, 3),
                          PRIMARY KEY (number, line_row));
CREATE TABLE payments (number int PRIMARY KEY, total decimal(14, 3));
CREATE TABLE order_news (id {serial}, order_key varchar(120), status varchar(20),
                         reason varchar(20), external_ids varchar(255), handled int DEFAULT 0)
"""
_TABLES = ("items", "places", "sessions", "orders", "order_lines", "payments", "order_news")
_QUERIES = Path(__file__).with_name("rig_queries.sql")


class SqlRig(Rig):
    """A database of its own on the server of this process."""

    adapter: ClassVar[Adapter] = ADAPTER

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = self.find_server()
        self.database = self.server.make_database(self.encoding)
        self.wire = Wire(self.server.port)
        self.engine: Engine = create_engine(self.server.url(self.database), poolclass=NullPool)
        (folder / "password").write_text(f"{PASSWORD}\n")
        (folder / "queries.sql").write_text(_QUERIES.read_text("utf-8"), "utf-8")
        serial = "serial PRIMARY KEY" if self.is_postgresql else "int AUTO_INCREMENT PRIMARY KEY"
        self.run(*_SCHEMA.format(serial=serial).split(";"))

    encoding: ClassVar[str] = ""

    @classmethod
    def find_server(cls) -> Server:
        """Return the server: PostgreSQL, or MariaDB where there is none. Raises CannotDo."""
        try:
            return postgresql()
        except NoServer as first:
            try:
                return mariadb()
            except NoServer as second:
                raise CannotDo(f"{first} {second}") from second

    @property
    def is_postgresql(self) -> bool:
        """Whether it is PostgreSQL."""
        return self.server.driver.startswith("postgresql")

    def options(self) -> Mapping[str, Any]:
        """Return what bridge.toml would say."""
        backend = "postgresql" if self.is_postgresql else "mysql"
        return {
            "url": f"{backend}://till@127.0.0.1:{self.wire.port}/{self.database}",
            "password": {"file": "password"},
            "queries": "queries.sql",
            "orders": True,
            "timeout_s": 2,
        }

    def close(self) -> None:
        """Remove the database."""
        self.wire.cut()
        self.engine.dispose()
        self.server.drop_database(self.database)

    def run(self, *statements: str, **values: object) -> None:
        """Change something in the till."""
        with self.engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement), values)

    def rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Look at something in the till."""
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement), values)]

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Fill the table of items."""
        rows = [
            {
                "id": item.external_id,
                "name": item.name,
                "price": to_major(item.price, currency),
                "place": place,
            }
            for place, item in enumerate(items)
        ]
        with self.engine.begin() as connection:
            connection.execute(text("DELETE FROM items"))
            connection.execute(
                text(
                    "INSERT INTO items (id, name, price, place) VALUES (:id, :name, :price, :place)"
                )
                if not self.is_postgresql
                else text(
                    "INSERT INTO items (id, name, price, place)"
                    " VALUES (:id, :name, CAST(:price AS decimal), :place)"
                ),
                rows,
            )
        return [replace(item, menus=()) for item in items]

    def rename(self, external_id: str, name: str) -> None:
        """Change a name."""
        self.run("UPDATE items SET name = :name WHERE id = :id", id=external_id, name=name)

    def reorder(self) -> None:
        """Turn the order round."""
        self.run("UPDATE items SET place = -place")

    def sell_out(self, external_id: str) -> None:
        """Mark an item."""
        self.run("UPDATE items SET sold_out = 1 WHERE id = :id", id=external_id)

    def furnish(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Fill the table of tables."""
        self.run("DELETE FROM places")
        for each in tables:
            self.run(
                "INSERT INTO places (id, name, seats, zone) VALUES (:id, :name, :seats, :zone)",
                id=each.external_id,
                name=each.name,
                seats=each.seats,
                zone=each.zone,
            )
        return tables

    def tickets(self) -> Sequence[RigTicket]:
        """Return the orders; one without all that belongs to it has no lines."""
        lines: dict[int, list[tuple[str, int]]] = {}
        for number, item, quantity in self.rows(
            "SELECT number, item, quantity FROM order_lines WHERE item IS NOT NULL"
            " AND number IN (SELECT number FROM payments) ORDER BY number, line_row"
        ):
            lines.setdefault(number, []).append((item, quantity))
        return [
            RigTicket(key, tuple(lines.get(number, ())), cancelled=bool(cancelled))
            for number, key, cancelled in self.rows(
                "SELECT number, order_key, cancelled FROM orders"
            )
        ]

    def tell(
        self,
        order_id: str,
        status: TicketStatus,
        *,
        reason: RejectReason | None = None,
        external_ids: Sequence[str] = (),
    ) -> None:
        """Write a row of news."""
        self.run(
            "INSERT INTO order_news (order_key, status, reason, external_ids)"
            " VALUES (:key, :status, :reason, :ids)",
            key=order_id,
            status=status.value,
            reason=None if reason is None else reason.value,
            ids=",".join(external_ids),
        )

    def close_store(self) -> None:
        """Close the session."""
        self.run("UPDATE sessions SET closed_at = '2026-01-02 23:00:00'")

    def go_offline(self) -> None:
        """Cut the line."""
        self.wire.cut()

    def come_back(self) -> None:
        """Mend it."""
        self.wire.open()

    def lose_next_answer(self) -> None:
        """Lose the answer to the next COMMIT, which the server does."""
        self.wire.lose_commits = True

    def answer_slowly(self, delay_s: float) -> None:
        """Let every answer take so long."""
        self.wire.delay(delay_s)

    def state(self) -> object:
        """Return all rows."""
        return {name: sorted(map(repr, self.rows(f"SELECT * FROM {name}"))) for name in _TABLES}  # noqa: S608 -- names of this module


class PostgresqlRig(SqlRig):
    """On PostgreSQL, or not at all."""

    @classmethod
    def find_server(cls) -> Server:
        """Return PostgreSQL. Raises CannotDo."""
        try:
            return postgresql()
        except NoServer as reason:
            raise CannotDo(str(reason)) from reason


class MariadbRig(SqlRig):
    """On MariaDB, or not at all."""

    encoding = "CHARACTER SET utf8mb4"

    @classmethod
    def find_server(cls) -> Server:
        """Return MariaDB. Raises CannotDo."""
        try:
            return mariadb()
        except NoServer as reason:
            raise CannotDo(str(reason)) from reason


RIG = SqlRig
