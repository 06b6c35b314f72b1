"""A till for the conformance suite: a database on a real server, behind a line that can fail."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Engine, create_engine, inspect, text

from tillbridge.adapter import Adapter, Catalogue, Item, RejectReason, Table, TicketStatus
from tillbridge.adapter.conformance import CannotDo, Rig, RigTicket, TicketLine
from tillbridge.model.money import major, to_major
from tillbridge_sql.adapter import ADAPTER
from tillbridge_sql.rig_servers import PASSWORD, NoServer, Server, mariadb, postgresql
from tillbridge_sql.rig_wire import Wire

_SCHEMA = """
CREATE TABLE items (id varchar(60) PRIMARY KEY, name varchar(255) NOT NULL,
                    price decimal(14, 3) NOT NULL, place int NOT NULL, sold_out int DEFAULT 0,
                    sold_out_until timestamp NULL, extras varchar(60));
CREATE TABLE sizes (id varchar(60) PRIMARY KEY, item varchar(60), name varchar(255),
                    price decimal(14, 3), place int);
CREATE TABLE extra_groups (id varchar(60) PRIMARY KEY, name varchar(255), most int);
CREATE TABLE extras (id varchar(60) PRIMARY KEY, group_id varchar(60), name varchar(255),
                     price decimal(14, 3), place int);
CREATE TABLE places (id varchar(60) PRIMARY KEY, name varchar(255), seats int, zone varchar(255));
CREATE TABLE sessions (id int PRIMARY KEY, closed_at timestamp NULL);
INSERT INTO sessions (id) VALUES (1);
CREATE TABLE orders (number {serial}, order_key varchar(120) NOT NULL UNIQUE, session int,
                     kind varchar(20), note varchar(1000), total decimal(14, 3), tax decimal(14, 3),
                     placed_at timestamp NULL,
                     cancelled int DEFAULT 0);
CREATE TABLE order_lines (number int, line_row int, line int,
                          item varchar(60) REFERENCES items (id), size varchar(60),
                          extra varchar(60), name varchar(255), quantity int, price decimal(14, 3),
                          PRIMARY KEY (number, line_row));
CREATE TABLE payments (number int PRIMARY KEY, total decimal(14, 3));
CREATE TABLE order_news (id {serial}, order_key varchar(120), status varchar(20),
                         reason varchar(20), external_ids varchar(255), handled int DEFAULT 0)
"""
_FORGET = "DELETE FROM items WHERE id NOT IN (SELECT item FROM order_lines WHERE item IS NOT NULL)"
_CHANGE = (
    "UPDATE items SET name = :name, price = {price}, place = :place, sold_out = 0,"
    " sold_out_until = NULL, extras = NULL WHERE id = :id"
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
            "timeout_s": 4,
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
            for name in ("sizes", "extras", "extra_groups"):
                connection.execute(text(f"DELETE FROM {name}"))  # noqa: S608 -- names of this module
            existing = set(connection.execute(text("SELECT id FROM items")).scalars())
            price = "CAST(:price AS decimal)" if self.is_postgresql else ":price"
            for statement, part in (
                (_CHANGE.format(price=price), [row for row in rows if row["id"] in existing]),
                (_ADD.format(price=price), [row for row in rows if row["id"] not in existing]),
            ):
                if part:
                    connection.execute(text(statement), part)
        return [replace(item, menus=()) for item in items]

    def sell_menu(self, menu: Catalogue, currency: str) -> Catalogue:
        """Fill the tables of sizes and extras too; an item has one group of extras at most."""
        sold = self.sell(list(menu.items.values()), currency)
        for item in sold:
            for place, size in enumerate(item.variants):
                self.run(
                    "INSERT INTO sizes (id, item, name, price, place)"
                    " VALUES (:id, :item, :name, :price, :place)",
                    id=size.external_id,
                    item=item.external_id,
                    name=size.variant_name,
                    price=major(size.price, currency),
                    place=place,
                )
            for group in item.addon_groups:
                self.run(
                    "UPDATE items SET extras = :group WHERE id = :id",
                    group=group,
                    id=item.external_id,
                )
        for group_id, its in menu.addon_groups.items():
            self.run(
                "INSERT INTO extra_groups (id, name, most) VALUES (:id, :name, :most)",
                id=group_id,
                name=its.name,
                most=its.max_select,
            )
            for place, add_on in enumerate(menu.add_ons[each] for each in its.add_ons):
                self.run(
                    "INSERT INTO extras (id, group_id, name, price, place)"
                    " VALUES (:id, :group, :name, :price, :place)",
                    id=add_on.external_id,
                    group=group_id,
                    name=add_on.name,
                    price=major(add_on.price, currency),
                    place=place,
                )
        return replace(menu, items={item.external_id: item for item in sold})

    def rename(self, external_id: str, name: str) -> None:
        """Change a name."""
        self.run("UPDATE items SET name = :name WHERE id = :id", id=external_id, name=name)

    def reorder(self) -> None:
        """Turn the order round."""
        self.run("UPDATE items SET place = -place")

    def sell_out(self, external_id: str) -> None:
        """Mark an item."""
        self.run("UPDATE items SET sold_out = 1 WHERE id = :id", id=external_id)

    def sell_out_until(self, external_id: str, until: datetime) -> None:
        """Mark it with its end, in UTC as the database has it."""
        self.run(
            "UPDATE items SET sold_out = 1, sold_out_until = :until WHERE id = :id",
            id=external_id,
            until=until.replace(tzinfo=None),
        )

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
        lines: dict[int, dict[int, TicketLine]] = {}
        for number, line, item, size, extra, quantity, price in self.rows(
            "SELECT number, line, item, size, extra, quantity, price FROM order_lines"
            " WHERE number IN (SELECT number FROM payments) ORDER BY number, line_row"
        ):
            its = lines.setdefault(number, {})
            if extra is None:
                its[line] = TicketLine(item, quantity, size, {}, _minor(price))
            else:
                its[line] = replace(its[line], options={**its[line].options, extra: quantity})
        return [
            RigTicket(
                key,
                tuple(lines.get(number, {}).values()),
                cancelled=bool(cancelled),
                note=note,
                order_type=kind,
                total=_minor(total),
                tax=_minor(tax),
            )
            for number, key, cancelled, note, kind, total, tax in self.rows(
                "SELECT number, order_key, cancelled, note, kind, total, tax FROM orders"
            )
        ]

    def report_progress(
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


def _minor(amount: Decimal) -> int:
    """Return an amount in euros, in which the suite orders, as cents."""
    return int(amount * 100)


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
