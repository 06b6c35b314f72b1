"""The tills of the profiles for tests: their tables, as their own scripts make them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import text

from tillbridge.adapter import Item, RejectReason, Table, TicketStatus
from tillbridge.adapter.conformance import CannotDo, RigTicket
from tillbridge.model.money import to_major
from tillbridge_sql.rig import MariadbRig, PostgresqlRig, SqlRig

_SCHEMAS = Path(__file__).with_name("rig_schemas")
_TAX = "001"


class ProfileRig(SqlRig):
    """A till of a kind that the adapter knows."""

    profile: ClassVar[str]
    parameters: ClassVar[Mapping[str, Any]]
    file: ClassVar[str] = ""

    def options(self) -> Mapping[str, Any]:
        """Name the profile instead of queries."""
        options = {**super().options(), "profile": self.profile, "parameters": self.parameters}
        del options["queries"]
        return options

    def schema(self) -> str:
        """Return what makes its tables."""
        return self.own_schema()

    def own_schema(self) -> str:
        """Return the file of its tables."""
        return (_SCHEMAS / f"{self.file or self.profile}.sql").read_text("utf-8")

    def flag(self, *, yes: bool) -> str:
        """Return yes or no as this database writes it."""
        return self.filled("{yes}" if yes else "{no}")

    def many(self, statement: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Run a statement for each row."""
        if rows:
            with self.engine.begin() as connection:
                connection.execute(text(statement), list(rows))


class UnicentaRig(ProfileRig):
    """uniCenta oPOS: prices without tax, closed receipts, the stock of one warehouse."""

    profile = "unicenta"
    parameters: ClassVar[Mapping[str, Any]] = {"host": "till-1", "stock_location": "0"}
    file = "unicenta"
    in_catalogue: ClassVar[str] = "products_cat"

    def schema(self) -> str:
        """Return what makes the tables, and what numbers tickets."""
        made = [self.own_schema()]
        for name in map(self.named, ("ticketsnum", "ticketsnum_refund")):
            if self.is_postgresql:
                made.append(f"CREATE SEQUENCE {name} START WITH 1")
            else:
                made += [f"CREATE TABLE {name} (id int NOT NULL)", f"INSERT INTO {name} VALUES (0)"]  # noqa: S608 -- names of this module
        return ";".join(made)

    def named(self, table: str) -> str:
        """Return a table's name as this kind of till writes it."""
        return table

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Fill the catalogue; prices are kept without their tenth of tax, as the till does."""
        rows = [
            {
                "id": item.external_id,
                "name": item.name,
                "price": float(to_major(item.price, currency)) / 1.1,
                "place": place,
            }
            for place, item in enumerate(items)
        ]
        no = self.flag(yes=False)
        for table in ("stockcurrent", "stockdiary", "products_cat", "products"):
            self.forget(table)
        self.many(
            f"INSERT INTO {self.named('products')} (id, reference, code, name, pricebuy, pricesell,"  # noqa: S608 -- names of this module
            " category, taxcat, iscom, isscale, isservice, isvprice)"
            f" VALUES (:id, :id, :id, :name, 0, :price, '000', '{_TAX}', {no}, {no}, {no},"
            f" {self.filled('{vno}')})",
            rows,
        )
        self.put_into_catalogue(rows)
        return [replace(item, menus=()) for item in items]

    def forget(self, table: str) -> None:
        """Empty a table."""
        self.run(f"DELETE FROM {self.named(table)}")  # noqa: S608 -- as above

    def put_into_catalogue(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Show the products on the sales screen."""
        self.many("INSERT INTO products_cat (product, catorder) VALUES (:id, :place)", rows)

    def rename(self, external_id: str, name: str) -> None:
        """Change a name."""
        self.run(
            f"UPDATE {self.named('products')} SET name = :name WHERE id = :id",  # noqa: S608 -- as above
            id=external_id,
            name=name,
        )

    def reorder(self) -> None:
        """Turn the order round."""
        self.run(f"UPDATE {self.named(self.in_catalogue)} SET catorder = -catorder")  # noqa: S608 -- as above

    def sell_out(self, external_id: str) -> None:
        """Let the stock be used up of what was received once."""
        self.run(
            f"INSERT INTO {self.named('stockdiary')} (id, datenew, reason, location, product,"  # noqa: S608 -- as above
            " units, price) VALUES (:id, '2026-01-01 09:00:00', 1, '0', :id, 5, 1)",
            f"INSERT INTO {self.named('stockcurrent')} (location, product, units)"  # noqa: S608 -- as above
            " VALUES ('0', :id, 0)",
            id=external_id,
        )

    def furnish(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Make floors and places; the till does not say how many seats."""
        for number, zone in enumerate(sorted({each.zone for each in tables})):
            self.run(
                f"INSERT INTO {self.named('floors')} (id, name) VALUES (:id, :name)",  # noqa: S608 -- as above
                id=str(number),
                name=zone,
            )
        for each in tables:
            self.run(
                f"INSERT INTO {self.named('places')} (id, name, x, y, floor)"  # noqa: S608 -- as above
                f" SELECT :id, :name, 0, 0, id FROM {self.named('floors')} WHERE name = :zone",
                id=each.external_id,
                name=each.name,
                zone=each.zone,
            )
        ordered = sorted(tables, key=lambda each: (each.zone, each.name))
        return [replace(each, seats=None) for each in ordered]

    def tickets(self) -> Sequence[RigTicket]:
        """Return the receipts that are paid; a refund of one cancels it."""
        tickets, lines, payments = map(self.named, ("tickets", "ticketlines", "payments"))
        refunds = {
            key.removesuffix("/cancelled")
            for (key,) in self.rows(f"SELECT id FROM {tickets} WHERE tickettype = 1")  # noqa: S608 -- as above
        }
        found: dict[str, list[tuple[str, int]]] = {}
        for key, product, units in self.rows(
            f"SELECT t.id, l.product, l.units FROM {tickets} t"  # noqa: S608 -- as above
            f" JOIN {payments} p ON p.receipt = t.id LEFT JOIN {lines} l ON l.ticket = t.id"
            " WHERE t.tickettype = 0 ORDER BY t.id, l.line"
        ):
            found.setdefault(key, []).append((product, round(units or 0)))
        return [RigTicket(key, tuple(its), cancelled=key in refunds) for key, its in found.items()]

    def close_store(self) -> None:
        """Close the cash of this terminal; another's stays open."""
        self.run(
            f"UPDATE {self.named('closedcash')} SET dateend = '2026-01-02 23:00:00'"  # noqa: S608 -- as above
            " WHERE host = 'till-1' AND dateend IS NULL"
        )

    def report_progress(
        self,
        order_id: str,
        status: TicketStatus,
        *,
        reason: RejectReason | None = None,
        external_ids: Sequence[str] = (),
    ) -> None:
        """Tell nothing: a receipt is closed."""
        raise CannotDo("This till does not report the progress of orders.")


class ChromisRig(UnicentaRig):
    """Chromis: the same in capitals, and the catalogue is a flag of the product."""

    profile = "chromis"
    in_catalogue = "products"

    def named(self, table: str) -> str:
        """Return the name in capitals, which MySQL on Linux tells apart."""
        return table.upper()

    def own_schema(self) -> str:
        """Return uniCenta's with the differences."""
        schema = (
            super()
            .own_schema()
            .replace(
                "isservice {flag} NOT NULL,",
                "isservice {flag} NOT NULL, iscatalog {flag}, catorder int,"
                " alwaysavailable {flag} NOT NULL DEFAULT {no}, managestock {flag},",
            )
        )
        statements = [each for each in schema.split(";") if "TABLE products_cat " not in each]
        return re.sub(
            r"(?<=CREATE TABLE )\w+|(?<=REFERENCES )\w+|(?<=INSERT INTO )\w+",
            lambda match: match.group().upper(),
            ";".join(statements),
        )

    def forget(self, table: str) -> None:
        """Empty a table; there is none for the catalogue."""
        if table != "products_cat":
            super().forget(table)

    def put_into_catalogue(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Mark the products."""
        self.many(
            f"UPDATE PRODUCTS SET iscatalog = {self.flag(yes=True)}, catorder = :place"  # noqa: S608 -- as above
            " WHERE id = :id",
            rows,
        )


class FloreantRig(ProfileRig):
    """Floreant: numbers for ids, open tickets that are paid, a drawer that somebody has."""

    profile = "floreant"
    parameters: ClassVar[Mapping[str, Any]] = {"terminal": 7}

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Fill the menu; the till gives the ids."""
        self.run("DELETE FROM MENU_ITEM")
        self.many(
            "INSERT INTO MENU_ITEM (ID, NAME, PRICE, BUY_PRICE, SORT_ORDER, GROUP_ID, TAX_GROUP_ID)"
            " VALUES (:id, :name, :price, 0, :id, 1, 'std')",
            [
                {"id": number, "name": item.name, "price": float(to_major(item.price, currency))}
                for number, item in enumerate(items, 1)
            ],
        )
        return [
            replace(item, external_id=str(number), menus=()) for number, item in enumerate(items, 1)
        ]

    def rename(self, external_id: str, name: str) -> None:
        """Change a name."""
        self.run("UPDATE MENU_ITEM SET NAME = :name WHERE ID = :id", id=int(external_id), name=name)

    def reorder(self) -> None:
        """Turn the order round."""
        self.run("UPDATE MENU_ITEM SET SORT_ORDER = -SORT_ORDER")

    def sell_out(self, external_id: str) -> None:
        """Let the stock be used up, and mark the item as one that then cannot be sold."""
        self.run(
            "UPDATE MENU_ITEM SET STOCK_AMOUNT = 0,"  # noqa: S608 -- a flag of this module
            f" DISABLE_WHEN_STOCK_AMOUNT_IS_ZERO = {self.flag(yes=True)} WHERE ID = :id",
            id=int(external_id),
        )

    def furnish(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Make floors and tables; the till gives the ids."""
        floors = {zone: number for number, zone in enumerate(sorted({t.zone for t in tables}), 1)}
        for zone, number in floors.items():
            self.run("INSERT INTO SHOP_FLOOR (ID, NAME) VALUES (:id, :name)", id=number, name=zone)
        for number, each in enumerate(tables, 1):
            self.run(
                "INSERT INTO SHOP_TABLE (ID, VERSION_NO, NAME, CAPACITY, FLOOR_ID)"
                " VALUES (:id, 0, :name, :seats, :floor)",
                id=number,
                name=each.name,
                seats=each.seats,
                floor=floors[each.zone],
            )
        return [replace(each, external_id=str(number)) for number, each in enumerate(tables, 1)]

    def tickets(self) -> Sequence[RigTicket]:
        """Return the tickets that have their payment."""
        found: dict[str, list[tuple[str, int]]] = {}
        voided = {}
        for key, is_voided, item, count in self.rows(
            "SELECT k.property_value, t.VOIDED, i.ITEM_ID, i.ITEM_COUNT FROM TICKET t"
            " JOIN TICKET_PROPERTIES k ON k.id = t.ID AND k.property_name = 'tillbridge_order'"
            " JOIN TRANSACTIONS x ON x.TICKET_ID = t.ID"
            " LEFT JOIN TICKET_ITEM i ON i.TICKET_ID = t.ID ORDER BY t.ID, i.ID"
        ):
            found.setdefault(key, []).append((str(item), count))
            voided[key] = is_voided if isinstance(is_voided, bool) else any(is_voided)
        return [RigTicket(key, tuple(its), cancelled=voided[key]) for key, its in found.items()]

    def close_store(self) -> None:
        """Take the drawer from whoever has it."""
        self.run("UPDATE TERMINAL SET ASSIGNED_USER = NULL")

    def report_progress(
        self,
        order_id: str,
        status: TicketStatus,
        *,
        reason: RejectReason | None = None,
        external_ids: Sequence[str] = (),
    ) -> None:
        """Settle the ticket, the one piece of news that there is."""
        if status is not TicketStatus.COMPLETED:
            raise CannotDo("This till only tells that a ticket was settled or voided.")
        self.run(
            f"UPDATE TICKET SET SETTLED = {self.flag(yes=True)} WHERE ID = (SELECT id"  # noqa: S608 -- as above
            " FROM TICKET_PROPERTIES"
            " WHERE property_name = 'tillbridge_order' AND property_value = :key)",
            key=order_id,
        )


class UnicentaOnPostgresql(UnicentaRig, PostgresqlRig):
    """uniCenta on PostgreSQL."""


class UnicentaOnMariadb(UnicentaRig, MariadbRig):
    """uniCenta on MariaDB."""


class ChromisOnPostgresql(ChromisRig, PostgresqlRig):
    """Chromis on PostgreSQL."""


class ChromisOnMariadb(ChromisRig, MariadbRig):
    """Chromis on MariaDB."""


class FloreantOnPostgresql(FloreantRig, PostgresqlRig):
    """Floreant on PostgreSQL."""


class FloreantOnMariadb(FloreantRig, MariadbRig):
    """Floreant on MariaDB."""
