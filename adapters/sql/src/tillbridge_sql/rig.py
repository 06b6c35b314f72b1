"""A till for the conformance suite: a database on a real server, behind a line that can fail."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Engine, create_engine, inspect, text

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
_FORGET = "DELETE FROM items WHERE id NOT IN (SELECT item FROM order_lines WHERE item IS NOT NULL)"
_CHANGE = (
    "UPDATE items SET name = :name, price = {price}, place = :place, sold_out = 0 WHERE id = :id"
)
_ADD = "INSERT INTO items (id, name, price, place) VALUES (:id, :name, {price}, :place)"
# A type as our schemas name it, in PostgreSQL and in MySQL.
_TYPES = (
    ("{serial}", "serial PRIMARY KEY", "int AUTO_INCREMENT PRIMARY KEY"),
    ("{flag}", "boolean", "bit(1)"),
    ("{blob}", "bytea", "mediumblob"),
    ("{double}", "double precision", "double"),
    ("{moment}", "timestamp", "datetime"),
    ("{yes}", "true", "b'1'"),
    ("{no}", "false", "b'0'"),
    ("{vflag}", "boolean", "smallint"),
    ("{vno}", "false", "0"),
)
_QUERIES = Path(__file__).with_name("rig_queries.sql")


class SqlRig(Rig):
    """A database of its own on the server of this process."""

    adapter: ClassVar[Adapter] = ADAPTER

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = self.find_server()
        self.wire = Wire(self.server.port)
        kind = type(self).__name__
        used = self.server.free_databases.setdefault(kind, [])
        self.database = used.pop() if used else self.server.make_database(self.encoding)
        is_new = kind not in self.server.made or self.database not in self.server.made[kind]
        self.engine: Engine = create_engine(self.server.url(self.database), pool_pre_ping=True)
        (folder / "password").write_text(f"{PASSWORD}\n")
        (folder / "queries.sql").write_text(_QUERIES.read_text("utf-8"), "utf-8")
        made = [each for each in self.filled(self.schema()).split(";") if each.strip()]
        inserts = [each for each in made if each.strip().startswith("INSERT")]
        if is_new:
            self.run(*(each for each in made if each not in inserts))
            self.server.made.setdefault(kind, set()).add(self.database)
        self.run(*inserts)

    encoding: ClassVar[str] = ""

    def schema(self) -> str:
        """Return what makes the till's tables, and what is in them at first."""
        return _SCHEMA

    def filled(self, schema: str) -> str:
        """Return a schema with the types of this database in it."""
        for ours, postgresql_, mysql in _TYPES:
            schema = schema.replace(ours, postgresql_ if self.is_postgresql else mysql)
        return schema

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
        """Empty the database, for the next till of this kind."""
        self.wire.cut()
        quoted = self.engine.dialect.identifier_preparer.quote
        without_keys = (
            "SET session_replication_role = replica"
            if self.is_postgresql
            else "SET FOREIGN_KEY_CHECKS = 0"
        )
        self.run(without_keys, *(f"DELETE FROM {quoted(name)}" for name in self.tables()))  # noqa: S608 -- the till's own names
        self.engine.dispose()
        self.server.free_databases[type(self).__name__].append(self.database)

    def tables(self) -> list[str]:
        """Return the names of the till's tables."""
        return sorted(inspect(self.engine).get_table_names())

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
            # What was ordered stays in the table, as it does in a real till.
            connection.execute(text(_FORGET))
            existing = set(connection.execute(text("SELECT id FROM items")).scalars())
            price = "CAST(:price AS decimal)" if self.is_postgresql else ":price"
            for statement, part in (
                (_CHANGE.format(price=price), [row for row in rows if row["id"] in existing]),
                (_ADD.format(price=price), [row for row in rows if row["id"] not in existing]),
            ):
                if part:
                    connection.execute(text(statement), part)
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
        quoted = self.engine.dialect.identifier_preparer.quote
        return {
            name: sorted(map(repr, self.rows(f"SELECT * FROM {quoted(name)}")))  # noqa: S608 -- the till's own names
            for name in self.tables()
        }


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
