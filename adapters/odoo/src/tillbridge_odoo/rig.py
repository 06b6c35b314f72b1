"""An Odoo for the conformance suite: emulated, behind a real loopback socket."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from tillbridge.adapter import Adapter, Catalogue, Item, Table
from tillbridge.adapter.conformance import Rig, RigTicket, TicketLine
from tillbridge.model.money import exponent
from tillbridge_odoo.adapter import ADAPTER
from tillbridge_odoo.emulated.server import OdooServer
from tillbridge_odoo.emulated.till import DATABASE, KEY, LOGIN, EmulatedOdoo
from tillbridge_odoo.names import Kind, named, number_of
from tillbridge_odoo.reference import key_in

_WORD = "Online"
_AMOUNTS = {"delivery_product": 901, "tip_product": 902, "discount_product": 903}
_EXTRA = frozenset(_AMOUNTS.values())
_KINDS = {"Delivery": "delivery", "Takeaway": "pickup", "Dine-in": "dine_in"}
_NOTES = ("general_customer_note", "general_note", "note")


class OdooRig(Rig):
    """One restaurant in one Odoo; version 17 here, others in the adapter's own tests."""

    adapter: ClassVar[Adapter] = ADAPTER
    version: ClassVar[int] = 17
    orders: ClassVar[str] = "draft"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._templates: dict[str, int] = {}
        self.odoo = EmulatedOdoo(self.version)
        self.odoo.seed()
        self.odoo.seat_online_orders()
        self._amounts: dict[str, int] = {}
        self.server = OdooServer(self.odoo)
        (folder / "odoo.key").write_text(f"{KEY}\n", "utf-8")

    @property
    def store(self) -> Any:  # noqa: ANN401 -- the emulated Odoo's records
        """The records, to be changed as by staff."""
        return self.odoo.store

    def options(self) -> Mapping[str, Any]:
        """Return what bridge.toml would say."""
        return {
            "url": self.server.url,
            "database": DATABASE,
            "login": LOGIN,
            "api_key": {"file": "odoo.key"},
            "orders": self.orders,
            "reference": _WORD,
            "online_table": _WORD,
            **self._amounts,
            "timeout_s": 3,
        }

    def close(self) -> None:
        """Stop the server."""
        self.server.stop()

    def sell(self, items: Sequence[Item], currency: str) -> Sequence[Item]:
        """Sell these as products with one variant each; one that was sold before keeps its id."""
        self.store.set("res.currency", 1, name=currency)
        if not self._templates:
            for model in ("product.product", "product.template"):
                self.store.clear(model)
        # Whoever looks meanwhile sees what stays on sale on sale.
        remaining = {item.external_id for item in items}
        for external_id, template in self._templates.items():
            if external_id not in remaining:
                self.store.set("product.template", template, available_in_pos=False)
        sold = []
        for place, item in enumerate(items):
            values = {
                "name": item.name,
                "list_price": item.price / 10 ** exponent(currency),
                "available_in_pos": True,
                "sale_ok": True,
                "self_order_available": True,
                "sequence": place,
            }
            if item.external_id in self._templates:
                template = self._templates[item.external_id]
                self.store.set("product.template", template, **values)
            else:
                template = self.store.add("product.template", **values)
                self.store.add("product.product", product_tmpl_id=template)
                self._templates[item.external_id] = template
            sold.append(replace(item, external_id=named(Kind.TEMPLATE, template)))
        return sold

    def sell_menu(self, menu: Catalogue, currency: str) -> Catalogue:
        """Give the products attributes: one that makes sizes, and one for each group of extras."""
        items, groups, add_ons = [], [], []
        sold = self.sell(list(menu.items.values()), currency)
        self._stock_amounts()
        for item in sold:
            template, lines = number_of(item.external_id, Kind.TEMPLATE) or 0, []
            if item.variants:
                prices = [each.price - item.price for each in item.variants]
                names = [each.variant_name for each in item.variants]
                line, values = self._attribute(template, "Size", names, prices, currency)
                lines.append(line)
                (plain,) = self.store.search(
                    "product.product", [["product_tmpl_id", "=", template]]
                )
                products = [plain]
                self.store.set(
                    "product.product", plain, product_template_attribute_value_ids=values[:1]
                )
                products += [
                    self.store.add(
                        "product.product",
                        product_tmpl_id=template,
                        product_template_attribute_value_ids=[value],
                    )
                    for value in values[1:]
                ]
                sizes = [
                    replace(size, external_id=named(Kind.PRODUCT, product))
                    for size, product in zip(item.variants, products, strict=True)
                ]
                item = replace(item, variants=tuple(sizes))  # noqa: PLW2901 -- as the till has it
            for group in (menu.addon_groups[each] for each in item.addon_groups):
                extras = [menu.add_ons[each] for each in group.add_ons]
                line, values = self._attribute(
                    template,
                    group.name,
                    [each.name for each in extras],
                    [each.price for each in extras],
                    currency,
                    chosen=True,
                )
                lines.append(line)
                its = [
                    replace(each, external_id=named(Kind.VALUE, value))
                    for each, value in zip(extras, values, strict=True)
                ]
                add_ons += its
                groups.append(
                    replace(
                        group,
                        external_id=named(Kind.LINE, line),
                        max_select=len(its),
                        add_ons=tuple(each.external_id for each in its),
                    )
                )
                item = replace(item, addon_groups=(groups[-1].external_id,))  # noqa: PLW2901 -- (as above)
            self.store.set("product.template", template, attribute_line_ids=lines)
            items.append(item)
        return Catalogue.of(items, add_ons=add_ons, addon_groups=groups)

    def _attribute(
        self,
        template: int,
        name: str,
        values: Sequence[str],
        prices: Sequence[int],
        currency: str,
        *,
        chosen: bool = False,
    ) -> tuple[int, list[int]]:
        """Add an attribute to a product; return its line, and its values there."""
        attribute = self.store.add(
            "product.attribute",
            name=name,
            display_type="multi" if chosen else "radio",
            create_variant="no_variant" if chosen else "always",
        )
        line = self.store.add(
            "product.template.attribute.line", attribute_id=attribute, product_tmpl_id=template
        )
        made = [
            self.store.add(
                "product.template.attribute.value",
                name=value,
                price_extra=price / 10 ** exponent(currency),
                product_attribute_value_id=self.store.add("product.attribute.value", name=value),
                product_tmpl_id=template,
                attribute_line_id=line,
                attribute_id=attribute,
                ptav_active=True,
            )
            for value, price in zip(values, prices, strict=True)
        ]
        return line, made

    def _stock_amounts(self) -> None:
        """Make the products for what is no dish: the fee of delivery, the tip, the discount."""
        self._amounts = _AMOUNTS
        for name, number in _AMOUNTS.items():
            self.store.add(
                "product.template",
                id=number,
                name=name,
                available_in_pos=True,
                sale_ok=True,
                self_order_available=True,
            )
            self.store.add("product.product", id=number, product_tmpl_id=number)

    def rename(self, external_id: str, name: str) -> None:
        """Rename the product."""
        self.store.set("product.template", number_of(external_id, Kind.TEMPLATE), name=name)

    def reorder(self) -> None:
        """Sort the other way round."""
        for template in self.store.all("product.template"):
            self.store.set("product.template", template["id"], sequence=-template["sequence"])

    def sell_out(self, external_id: str) -> None:
        """Take it off sale in self-ordering, as staff does."""
        number = number_of(external_id, Kind.TEMPLATE)
        self.store.set("product.template", number, self_order_available=False)

    def furnish(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Make a floor for each zone, with its tables."""
        made: list[Table] = []
        floors: dict[str, int] = {}
        for place, table in enumerate(tables, 1):
            if table.zone not in floors:
                floors[table.zone] = self.store.add(
                    "restaurant.floor", name=table.zone, pos_config_ids=[1]
                )
            # Since 18 a table has a number, and no name.
            name = table.name if self.version == 17 else str(place)
            label = {"name": name} if self.version == 17 else {"table_number": place}
            number = self.store.add(
                "restaurant.table", floor_id=floors[table.zone], seats=table.seats, **label
            )
            made.append(replace(table, external_id=named(Kind.TABLE, number), name=name))
        self.store.set("pos.config", 1, floor_ids=list(floors.values()))
        return made

    def tickets(self) -> Sequence[RigTicket]:
        """Return every order."""
        given_back = {
            self.store.record("pos.order.line", line["refunded_orderline_id"])["order_id"]
            for order in self.store.all("pos.order")
            if order["amount_total"] < 0 and order["state"] == "paid"
            for line in self.odoo.sales.lines(order["id"])
        }
        return [
            self._ticket(order, cancelled=order["state"] == "cancel" or order["id"] in given_back)
            for order in self.store.all("pos.order")
            if order["amount_total"] >= 0
        ]

    def _ticket(self, order: Mapping[str, Any], *, cancelled: bool) -> RigTicket:
        lines = self.odoo.sales.lines(order["id"])
        notes = [order.get(name) for name in _NOTES]
        notes += [line.get("customer_note") for line in lines]
        note = next(filter(None, notes), "")
        return RigTicket(
            key_in(order["pos_reference"], _WORD) or "",
            tuple(self._line(each) for each in lines if each["product_id"] not in _EXTRA),
            cancelled=cancelled,
            note=note,
            order_type=next((kind for word, kind in _KINDS.items() if f"{word} - " in note), ""),
            total=round(order["amount_total"] * 100),
        )

    def _line(self, line: Mapping[str, Any]) -> TicketLine:
        product = self.store.record("product.product", line["product_id"])
        template = product["product_tmpl_id"]
        sizes = self.store.search("product.product", [["product_tmpl_id", "=", template]])
        # How many of an extra stands in the name of the line: "Pizza (Cheese, Olives x2)".
        options = {}
        for value in line.get("attribute_value_ids") or ():
            name = re.escape(self.store.record("product.template.attribute.value", value)["name"])
            often = re.search(rf"{name} x(\d+)", line["full_product_name"])
            options[named(Kind.VALUE, value)] = int(often[1]) if often else 1
        return TicketLine(
            named(Kind.TEMPLATE, template),
            int(line["qty"]),
            named(Kind.PRODUCT, product["id"]) if len(sizes) > 1 else None,
            options,
            round((line["price_unit"] - line["price_extra"]) * 100),
        )

    def close_store(self) -> None:
        """Close the register."""
        self.odoo.close_sessions()

    def go_offline(self) -> None:
        """Stop answering."""
        self.server.stop()

    def come_back(self) -> None:
        """Answer again, at the same port."""
        self.server.start()

    def hang_writes(self) -> None:
        """Let writes wait for a lock on the table of orders."""
        self.server.hang_writes()

    def carry_out_writes(self) -> None:
        """Give the lock back, and wait until what was asked is done."""
        self.server.carry_out_writes()
        self.server.wait_until_idle()

    def lose_next_answer(self) -> None:
        """Take the next order, and cut the connection before the answer."""
        self.server.lose_next = True

    def answer_slowly(self, delay_s: float) -> None:
        """Answer everything so much later."""
        self.server.delay_s = delay_s

    def state(self) -> object:
        """Return what stands in Odoo."""
        models = ("pos.order", "pos.order.line", "pos.payment", "pos.session", "product.template")
        return {model: [dict(each) for each in self.store.all(model)] for model in models}


RIG = OdooRig
