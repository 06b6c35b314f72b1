"""What can be chosen of a product: attributes with extra prices, and the parts of combos. Pure.

Attributes that make products of their own (sizes with their own stock) are variants of an item;
those that do not ("no_variant") are groups of add-ons. Each choice of a combo is a group too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tillbridge.adapter import AddOn, AddOnGroup
from tillbridge.adapter.texts import _
from tillbridge_odoo.amounts import decimal_of, minor
from tillbridge_odoo.names import Kind, named
from tillbridge_odoo.odoo import Record
from tillbridge_odoo.records import Combo, Records
from tillbridge_odoo.register import number, text
from tillbridge_odoo.taxes import Taxes


class Unsellable(Exception):
    """Something of a product cannot be said to the ordering service; what, and what to do."""

    def __init__(self, field_name: str, text: str, fix: str) -> None:
        super().__init__(text)
        self.field_name = field_name
        self.text = text
        self.fix = fix


@dataclass(slots=True)
class Choices:
    """The groups and add-ons of a menu, collected product by product."""

    records: Records
    taxes: Taxes
    currency: str
    mode: str
    groups: dict[str, AddOnGroup] = field(default_factory=dict)
    add_ons: dict[str, AddOn] = field(default_factory=dict)

    def of(self, template: Record, taxes: Sequence[int]) -> tuple[str, ...]:
        """Return the groups of a product, by external id. Raises Unsellable."""
        return (*self._attributes(template, taxes), *self._combos(template, taxes))

    def _attributes(self, template: Record, taxes: Sequence[int]) -> Iterator[str]:
        for line_id, line in self.records.lines.items():
            if line_id not in template["attribute_line_ids"]:
                continue
            attribute = self.records.attributes.get(number(line["attribute_id"]) or 0)
            if attribute is None or attribute["create_variant"] != "no_variant":
                continue
            values = [
                value
                for value in self.records.values.values()
                if number(value["attribute_line_id"]) == line_id
            ]
            if values:
                several = attribute["display_type"] == "multi"
                group = named(Kind.LINE, line_id)
                self.groups[group] = AddOnGroup(
                    external_id=group,
                    name=_one_line(attribute["name"]),
                    min_select=0 if several else 1,
                    max_select=len(values) if several else 1,
                    required=not several,
                    add_ons=tuple(self._value(value, taxes) for value in values),
                )
                yield group

    def _value(self, value: Record, taxes: Sequence[int]) -> str:
        external_id, name = named(Kind.VALUE, value["id"]), _one_line(value["name"])
        self._add(external_id, name, value["price_extra"], taxes)
        return external_id

    def _combos(self, template: Record, taxes: Sequence[int]) -> Iterator[str]:
        for each in template.get("combo_ids") or ():
            combo = self.records.combos.get(each)
            if combo is not None:
                yield self._combo(combo, taxes)

    def _combo(self, combo: Combo, taxes: Sequence[int]) -> str:
        group = named(Kind.COMBO, combo.id)
        paid = combo.free == 0
        there = [item for item in combo.items if item.product in self.records.chosen]
        if not there and not paid:
            raise Unsellable(
                "combo_ids",
                _("Nothing is left to choose for {name!r}.").format(name=combo.name),
                _("Put products that are not archived into the combo, or archive it."),
            )
        for item in there:
            extra = decimal_of(item.extra) + (decimal_of(combo.base_price) if paid else 0)
            name = _one_line(self.records.chosen[item.product]["display_name"])
            self._add(named(Kind.COMBO_ITEM, item.id), name, extra, taxes)
        self.groups[group] = AddOnGroup(
            external_id=group,
            name=_one_line(combo.name),
            min_select=combo.free,
            max_select=combo.most if paid else combo.free,
            required=not paid,
            add_ons=tuple(named(Kind.COMBO_ITEM, item.id) for item in there),
        )
        return group

    def _add(self, external_id: str, name: str, extra: object, taxes: Sequence[int]) -> None:
        # A fixed tax is levied once a line, and not once more for each extra.
        rates = [each for each in taxes if self._is_rate(each)]
        price = self.taxes.shown(decimal_of(extra), rates, self.mode)
        if price < 0:
            raise Unsellable(
                "price_extra",
                _(
                    "Choosing {name!r} lowers the price, which the ordering service cannot take."
                ).format(name=name),
                _("Lower the product's own price, and let the other choices raise it."),
            )
        self.add_ons[external_id] = AddOn(external_id, name, minor(price, self.currency))

    def _is_rate(self, tax: int) -> bool:
        return all(each.kind != "fixed" for each in self.taxes.flat([tax]))


def _one_line(value: object) -> str:
    return " ".join(text(value).split())
