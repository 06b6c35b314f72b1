"""What staff sees and does on the screen of an Odoo 17's point of sale, as far as it matters here.

The screen is a program of its own: it shows other orders than the database has, and writes back
other lines than it got. Made after a real 17 that was worked with in a browser.
"""

import json
from typing import Any

from tillbridge_odoo.emulated.faults import user_error
from tillbridge_odoo.emulated.till import EmulatedOdoo

_LINE = "pos.order.line"


class Screen17:
    """The screen of one point of sale."""

    def __init__(self, odoo: EmulatedOdoo, config: int = 1) -> None:
        self._odoo = odoo
        self._store = odoo.store
        self._config = config

    def products(self) -> set[int]:
        """Return the products that the screen loads when it is opened."""
        config = self._store.record("pos.config", self._config)
        domain: list[Any] = [["available_in_pos", "=", True], ["sale_ok", "=", True]]
        if config["limit_categories"] and config["iface_available_categ_ids"]:
            domain.append(["pos_categ_ids", "in", config["iface_available_categ_ids"]])
        found = set(self._store.search("product.product", domain))
        if config["iface_tipproduct"] and config["tip_product_id"]:
            found.add(config["tip_product_id"])
        return found

    def orders(self) -> list[int]:
        """Return the open orders that staff finds: on tables, or in a shop with self-ordering."""
        config = self._store.record("pos.config", self._config)
        drafts = [
            each
            for each in self._store.all("pos.order")
            if each["config_id"] == self._config and each["state"] == "draft"
        ]
        if config["module_pos_restaurant"]:
            floors = config["floor_ids"]
            tables = {
                each["id"]
                for each in self._store.all("restaurant.table")
                if each["floor_id"] in floors
            }
            return [each["id"] for each in drafts if each["table_id"] in tables]
        configs = self._store.all("pos.config")
        if any(each["self_ordering_mode"] not in {False, "nothing"} for each in configs):
            return [each["id"] for each in drafts]
        return []

    def order_to_kitchen(self, order: int) -> list[str]:
        """Press *Order*; return the kitchen's ticket, a line for each: quantity, name, note."""
        self._found(order)
        lines = self._loaded(order)
        sent = {
            f"{line['uuid']} - {line['note'] or ''}": {"quantity": line["qty"]} for line in lines
        }
        self._store.set("pos.order", order, last_order_preparation_change=json.dumps(sent))
        return [
            f"{line['qty']:g} {line['full_product_name'] or ''} {line['note'] or ''}".strip()
            for line in lines
        ]

    def settle(self, order: int, method: int = 1) -> float:
        """Open an order and have it paid; return what the guest pays. Lines may get lost here."""
        self._found(order)
        loaded = {line["id"] for line in self._loaded(order)}
        for line in self._odoo.sales.lines(order):
            if line["id"] not in loaded:
                self._store.remove(_LINE, line["id"])
        lines = self._odoo.sales.lines(order)
        total: float = round(sum(each["price_subtotal_incl"] for each in lines), 2)
        self._store.set("pos.order", order, amount_total=total)
        self._odoo.sales.pay(order, method)
        return total

    def close_session(self) -> None:
        """Close the session of the day. Raises OdooFault while an order is open."""
        for session in self._store.all("pos.session"):
            for order in self._store.all("pos.order"):
                if order["session_id"] == session["id"] and order["state"] == "draft":
                    raise user_error("You cannot close the POS when orders are still in draft")
        self._odoo.close_sessions()

    def _found(self, order: int) -> None:
        if order not in self.orders():
            raise LookupError(f"Nobody finds the order {order} on the screen.")

    def _loaded(self, order: int) -> list[dict[str, Any]]:
        products = self.products()
        return [each for each in self._odoo.sales.lines(order) if each["product_id"] in products]
