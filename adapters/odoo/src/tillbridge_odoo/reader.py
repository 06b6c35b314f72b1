"""Reads the menu when there is a sign that it has changed, and the tables and what is sold out."""

from dataclasses import dataclass
from time import monotonic

from tillbridge.adapter import (
    Availability,
    AvailabilityReading,
    Catalogue,
    ExportUnreadable,
    Source,
    Table,
    TablesReading,
)
from tillbridge.adapter.texts import _
from tillbridge_odoo.failures import reading
from tillbridge_odoo.menu import MenuMaker
from tillbridge_odoo.names import Kind, named
from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.options import OdooOptions
from tillbridge_odoo.prices import read_prices
from tillbridge_odoo.products import amount_products
from tillbridge_odoo.records import read_records, sold_domain
from tillbridge_odoo.register import NoSuchRegister, Register, find_register, number
from tillbridge_odoo.setup import online_table
from tillbridge_odoo.signs import Signs, read_signs
from tillbridge_odoo.tables import RestaurantTable, read_tables

_ORDER = "sequence, name, id"
# Stamps are whole seconds: another change in the second of the last one does not move them. So the
# menu is read whole until its signs have been the same for this long.
_SETTLED_S = 2.0


@dataclass(frozen=True, slots=True)
class _Read:
    """The last reading of the menu: `at` when, `since` when its signs were first seen.

    Monotonic seconds.
    """

    catalogue: Catalogue
    signs: Signs
    at: float
    since: float


class Reader:
    """What the bridge reads of one point of sale."""

    def __init__(self, odoo: Odoo, options: OdooOptions, currency: str) -> None:
        self._odoo = odoo
        self._options = options
        self._currency = currency
        self._last: _Read | None = None

    def catalogue(self) -> Catalogue:
        """Return the menu. Raises ExportUnreadable, PosOffline."""
        with reading():
            register = self.register()
            context = self._context(register)
            sold = sold_domain(self._odoo, register)
            signs = read_signs(self._odoo, register, sold, context)
            last, now = self._last, monotonic()
            if last is not None and signs == last.signs and not self._is_due(last, now):
                return last.catalogue
            catalogue = self._whole(register, sold, context)
            if read_signs(self._odoo, register, sold, context) != signs:
                raise ExportUnreadable(
                    _("The menu is being changed in Odoo."),
                    place="Odoo",
                    fix=_("Nothing to do; it is read again soon."),
                    passing=True,
                )
        unchanged = last is not None and signs == last.signs
        if unchanged and last is not None and catalogue == last.catalogue:
            catalogue = last.catalogue
        self._last = _Read(catalogue, signs, now, last.since if last and unchanged else now)
        return catalogue

    def availability(self) -> AvailabilityReading:
        """Return what is off sale in Odoo. Raises ExportUnreadable, PosOffline."""
        with reading():
            register = self.register()
            off = [named(Kind.TEMPLATE, each) for each in self._not_sold(register)]
            off += self._without_stock(register)
        return AvailabilityReading(dict.fromkeys(off, Availability(available=False)))

    def tables(self) -> TablesReading:
        """Return the tables of the point of sale's floors. Raises as `catalogue`."""
        with reading():
            register = self.register()
            tables = read_tables(self._odoo, register, self._context(register))
            online = online_table(self._odoo, register, self._options, tables).table
        found = {each.id: _table(each) for each in tables if each != online}
        places = {
            table.external_id: f'Odoo, restaurant.table {each} "{table.name}"'
            for each, table in found.items()
        }
        columns = {"name": "table_number", "zone": "floor_id"}
        return TablesReading(tuple(found.values()), source=Source(places, columns))

    def register(self) -> Register:
        """Return the point of sale. Raises ExportUnreadable."""
        try:
            register = find_register(self._odoo, self._options.pos)
        except NoSuchRegister as missing:
            raise ExportUnreadable(missing.text, place="Odoo", fix=missing.fix) from missing
        if register.currency != self._currency:
            raise ExportUnreadable(
                _("{name} sells in {currency}, and the store in {store_currency}.").format(
                    name=register.name, currency=register.currency, store_currency=self._currency
                ),
                place="Odoo",
                fix=_("Correct the store's currency in bridge.toml, or the option pos."),
            )
        return register

    def _whole(self, register: Register, sold: list[object], context: Record) -> Catalogue:
        ids = self._odoo.search("product.template", sold, order=_ORDER, context=context)
        records = read_records(self._odoo, register, ids, context)
        prices = read_prices(self._odoo, register)
        amounts = amount_products(self._odoo, register, self._options)
        maker = MenuMaker(
            register,
            records,
            prices,
            mode=self._options.prices,
            left_out=[each.template for each in amounts if each.template is not None],
        )
        return maker.make()

    def _is_due(self, last: _Read, now: float) -> bool:
        settled = last.at - last.since >= _SETTLED_S
        return not settled or now - last.at >= self._options.full_read_s

    def _context(self, register: Register) -> Record:
        return {**register.context, "display_default_code": False}

    def _not_sold(self, register: Register) -> list[int]:
        """Return products of the point of sale that are archived, taken off, or not for sale."""
        domain: list[object] = [
            "&",
            "|",
            ["available_in_pos", "=", True],
            ["pos_categ_ids", "!=", False],
            "|",
            "|",
            ["active", "=", False],
            ["sale_ok", "=", False],
            ["available_in_pos", "=", False],
        ]
        follow = self._options.self_order == "follow"
        if follow and "self_order_available" in self._odoo.fields("product.template"):
            domain = ["|", *domain, "&"]
            domain += [["available_in_pos", "=", True], ["self_order_available", "=", False]]
        context = {**register.context, "active_test": False}
        return self._odoo.search("product.template", domain, context=context)

    def _without_stock(self, register: Register) -> list[str]:
        """Return storable products of which nothing is left in the point of sale's warehouse.

        A template is among them when all its products are.
        """
        if self._options.stock == "ignore":
            return []
        storable: list[object] = ["is_storable", "=", True]
        if "is_storable" not in self._odoo.fields("product.product"):
            storable = ["detailed_type", "=", "product"]
        quantity = "qty_available" if self._options.stock == "on_hand" else "virtual_available"
        warehouse = self._warehouse(register)
        context = dict(register.context)
        if warehouse is not None:  # the key has another name since 18
            context |= {"warehouse": warehouse, "warehouse_id": warehouse}
        products = self._odoo.read(
            "product.product",
            register.of_company([storable, ["available_in_pos", "=", True]]),
            [quantity, "product_tmpl_id"],
            context=context,
        )
        left = {number(each["product_tmpl_id"]) for each in products if each[quantity] > 0}
        off = [each for each in products if each[quantity] <= 0]
        templates = dict.fromkeys(number(each["product_tmpl_id"]) for each in off)
        return [
            *(named(Kind.TEMPLATE, each) for each in templates if each and each not in left),
            *(named(Kind.PRODUCT, each["id"]) for each in off),
        ]

    def _warehouse(self, register: Register) -> int | None:
        if register.picking_type is None:
            return None
        found = self._odoo.read(
            "stock.picking.type", [["id", "=", register.picking_type]], ["warehouse_id"]
        )
        return number(found[0]["warehouse_id"]) if found else None


def _table(table: RestaurantTable) -> Table:
    return Table(
        external_id=named(Kind.TABLE, table.id),
        name=table.name,
        seats=table.seats,
        zone=table.floor,
    )
