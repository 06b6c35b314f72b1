"""A restaurant for the adapter's own tests: its emulated Odoo, and the adapter on it."""

from typing import Any

from tillbridge.adapter import Order
from tillbridge.model.order import parse_order
from tillbridge_odoo.adapter import OdooAdapter
from tillbridge_odoo.emulated.screen import Screen17
from tillbridge_odoo.options import OdooOptions
from tillbridge_odoo.rig import OdooRig

Line = dict[str, Any]


class Shop:
    """A restaurant: its Odoo, and the adapter on it."""

    def __init__(self, rig: OdooRig) -> None:
        self.rig = rig
        self.odoo = rig.odoo
        self.store = rig.store
        self.server = rig.server
        self.screen = Screen17(rig.odoo)
        self._opened: list[OdooAdapter] = []

    def open(self, currency: str = "EUR", **options: Any) -> OdooAdapter:  # noqa: ANN401 -- any option
        """Open the adapter, with these options beside those of the rig."""
        checked = OdooOptions.model_validate({**self.rig.options(), **options})
        self._opened.append(OdooAdapter(checked, self.rig.context(currency)))
        return self._opened[-1]

    def close(self) -> None:
        """Close what was opened, and stop the server."""
        while self._opened:
            self._opened.pop().close()
        self.rig.close()

    def product(self, name: str, price: float, **values: Any) -> int:  # noqa: ANN401 -- any field
        """Add a product with one variant; both have the same number."""
        template = self.store.add(
            "product.template",
            name=name,
            list_price=price,
            available_in_pos=True,
            sale_ok=True,
            self_order_available=True,
            **values,
        )
        self.store.add("product.product", id=template, product_tmpl_id=template)
        return int(template)

    def combo(self, *, free: int = 1) -> int:
        """Add burgers and drinks, and a menu of one of each at 10.00; return its template."""
        burger, bacon, cola = (
            self.product(name, price) for name, price in (("Burger", 7), ("Bacon", 8), ("Cola", 2))
        )
        names = ("pos.combo", "pos.combo.line", "combo_line_ids", "combo_price")
        if self.odoo.version >= 18:
            names = ("product.combo", "product.combo.item", "combo_item_ids", "extra_price")
        combo, item, items, extra = names
        self.store.add(item, id=1, product_id=burger, combo_id=1)
        self.store.add(item, id=2, product_id=bacon, combo_id=1, **{extra: 1.5})
        self.store.add(item, id=3, product_id=cola, combo_id=2)
        more = {"qty_free": free, "qty_max": max(free, 1)} if self.odoo.version >= 19 else {}
        self.store.add(combo, id=1, name="Burgers", base_price=7.0, **{items: [1, 2]}, **more)
        self.store.add(combo, id=2, name="Drinks", base_price=2.0, **{items: [3]}, **more)
        kind = "type" if self.odoo.version >= 18 else "detailed_type"
        return self.product("Menu", 10.0, combo_ids=[1, 2], **{kind: "combo"})

    def table(self, name: int = 5) -> int:
        """Add a table on a floor of the restaurant."""
        return self.table_on("Hall", name)

    def table_on(self, floor_name: str, name: int | str) -> int:
        """Add a table on a floor, which is added if it is not there."""
        named = [each for each in self.store.all("restaurant.floor") if each["name"] == floor_name]
        floor = (
            named[0]["id"]
            if named
            else self.store.add("restaurant.floor", name=floor_name, pos_config_ids=[1])
        )
        floors = dict.fromkeys([*self.store.record("pos.config", 1)["floor_ids"], floor])
        self.store.set("pos.config", 1, floor_ids=list(floors))
        label = {"name": str(name)} if self.odoo.version == 17 else {"table_number": name}
        return int(self.store.add("restaurant.table", floor_id=floor, seats=2, **label))

    def orders(self) -> list[dict[str, Any]]:
        """Return all orders in Odoo."""
        return list(self.store.all("pos.order"))

    def state(self) -> list[str]:
        """Return the states of all orders."""
        return [str(order["state"]) for order in self.orders()]

    def lines(self, number: int = 0) -> list[dict[str, Any]]:
        """Return the lines of an order, by its place."""
        return self.odoo.sales.lines(self.orders()[number]["id"])


def order_for(*lines: Line, order_id: str = "ord_1", **more: Any) -> Order:  # noqa: ANN401 -- any field
    """Return an order of these lines, as the service delivers it."""
    return parse_order(
        {"id": order_id, "order_number": "4711", "currency": "EUR", "items": list(lines), **more}
    )


def line_of(external_id: str, *, price: int | None = None, quantity: int = 1, **more: Any) -> Line:  # noqa: ANN401 -- any field
    """Return a line of an order."""
    return {
        "product_name": external_id,
        "external_id": external_id,
        "variant_external_id": None,
        "quantity": quantity,
        "unit_price": price,
        "options": [],
        **more,
    }
