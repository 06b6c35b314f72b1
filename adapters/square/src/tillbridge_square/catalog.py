"""A catalog as JSON: the objects of Square's ListCatalog, in one page or several. Pure.

Prices are minor units already. What is set to -1 is inherited: an item that asks for "at least -1"
of a modifier list asks for what the list itself says. A most of 0 is no limit.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal

from tillbridge.adapter import (
    AddOn,
    AddOnGroup,
    BadRow,
    Category,
    Item,
    ItemTax,
    TaxComponent,
    Variant,
)
from tillbridge.adapter.export_items import UNREADABLE, RowError, VariablePrice, sizes_of, tax_of
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.sale_options import NotForSale, SaleRules, chosen_taxes
from tillbridge.adapter.texts import _, one_line, without_markup
from tillbridge.model.export_facts import ExportFacts
from tillbridge.model.numbers import parse_decimal
from tillbridge_square.catalog_objects import (
    Object,
    amount_of,
    dicts_in,
    ids_in,
    number_or,
    objects_in,
    part_of,
)
from tillbridge_square.options import SquareOptions

# What the objects of a catalog call the fields of an item and its parts.
COLUMNS = {
    "external_id": "id",
    "name": "item_data.name",
    "price": "price_money.amount",
    "description": "item_data.description",
    "image_url": "image_data.url",
    "categories": "item_data.categories",
    "addon_groups": "item_data.modifier_list_info",
    "tax": "tax_data.percentage",
    "variants": "item_data.variations",
    "variants.variant_name": "item_variation_data.name",
    "categories.external_id": "id",
    "categories.name": "category_data.name",
    "add_ons.external_id": "id",
    "add_ons.name": "modifier_data.name",
    "add_ons.price": "modifier_data.price_money.amount",
    "addon_groups.external_id": "id",
    "addon_groups.name": "modifier_list_data.name",
    "addon_groups.min_select": "min_selected_modifiers",
    "addon_groups.max_select": "max_selected_modifiers",
    "addon_groups.add_ons": "modifier_list_data.modifiers",
}
# Part of every fingerprint. Raise it when the same object comes to mean another item.
_READING_VERSION = 3


@dataclass(slots=True)
class CatalogFound:
    """What was made of the objects."""

    items: dict[str, Item] = field(default_factory=dict)
    fingerprints: dict[str, int] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    part_places: dict[str, str] = field(default_factory=dict)
    categories: dict[str, Category] = field(default_factory=dict)
    groups: dict[str, AddOnGroup] = field(default_factory=dict)
    add_ons: dict[str, AddOn] = field(default_factory=dict)
    bad_rows: list[BadRow] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # why a modifier list cannot be offered
    facts: ExportFacts = field(default_factory=ExportFacts)

    def retain_groups(self, used: AbstractSet[str]) -> None:
        """Leave out the groups that no item has, and the add-ons of these alone."""
        self.groups = {name: group for name, group in self.groups.items() if name in used}
        chosen = {add_on for group in self.groups.values() for add_on in group.add_ons}
        self.add_ons = {name: add_on for name, add_on in self.add_ons.items() if name in chosen}


@dataclass(frozen=True, slots=True)
class _Parts:
    """What an item is made of beside its own object, and where it stands."""

    categories: tuple[str, ...]
    place: str
    taxes: AbstractSet[str]  # ids of those that count online


@dataclass(frozen=True, slots=True)
class Catalog:
    """The objects by type and id, of one location ("" where it does not matter)."""

    name: str
    objects: Mapping[str, Mapping[str, Object]]
    location: str
    currency: str
    menu: str

    @classmethod
    def of(
        cls, document: object, name: str, *, location: str, currency: str, menu: str
    ) -> "Catalog":
        """Sort the objects of a parsed document. Raises ValueError for one that is no catalog."""
        objects: dict[str, dict[str, Object]] = {}
        for each in objects_in(document):
            if not each.get("is_deleted") and isinstance(each.get("id"), str):
                objects.setdefault(str(each.get("type")), {})[each["id"]] = each
        return cls(name, objects, location, currency, menu)

    def locations(self) -> Sequence[str]:
        """Return the ids of all locations that the objects name."""
        named: set[str] = set()
        for each in (each for kind in self.objects.values() for each in kind.values()):
            variations = dicts_in(part_of(each, "item_data").get("variations"))
            for part in (each, *variations):
                for key in ("present_at_location_ids", "absent_at_location_ids"):
                    if key in part:
                        named.update(ids_in(part, key))
            for variation in variations:
                data = part_of(variation, "item_variation_data")
                for override in dicts_in(data.get("location_overrides")):
                    named.add(str(override.get("location_id")))
        return sorted(named)

    def read(
        self, known: AbstractSet[int], options: SquareOptions
    ) -> tuple[CatalogFound, KnownRecords]:
        """Return what is sold at the location and not known, and all that items name.

        Raises ExportUnreadable for a tax of the options that the catalog does not have.
        """
        found = CatalogFound()
        named = [(_tax_name(each), identity) for identity, each in self._of_type("TAX")]
        counted = frozenset(chosen_taxes(options, named, export=self.name))
        categories_by_id = {
            identity: one_line(str(part_of(each, "category_data").get("name", identity)))
            for identity, each in self._of_type("CATEGORY")
        }
        rules = SaleRules(options, found.groups, found.add_ons, categories_by_id)
        used: set[str] = set()
        kinds = (self.objects.get("MODIFIER_LIST"), self.objects.get("TAX"))
        records = KnownRecords(
            *(known, _READING_VERSION, self.location, self.currency, self.menu, kinds, options)
        )
        for number, (identity, each) in enumerate(self._of_type("MODIFIER_LIST"), 1):
            if self._is_here(each):
                found.part_places[identity] = _(
                    "{name}, modifier list {number} ({identity})"
                ).format(name=self.name, number=number, identity=identity)
                self._take_list(identity, each, found)
        garbled = {
            identity
            for kind in ("CATEGORY", "MODIFIER_LIST", "TAX")
            for identity, each in self._of_type(kind)
            if UNREADABLE in repr(each)
        }
        offered: set[str] = set()  # groups of all items, known ones too
        owners: dict[str, str] = {}  # the item that has an id, its own or a variation's
        for number, (identity, each) in enumerate(self._of_type("ITEM"), 1):
            if not self._is_sold(each):
                continue
            data = part_of(each, "item_data")
            categories = self._categories(data)
            place = _("{name}, item {number} ({identity})").format(
                name=self.name, number=number, identity=identity
            )
            if owner := self._owner(owners, identity, data):
                found.bad_rows.append(_twice(place, identity, *owner))
                continue
            offered.update(self._groups_named(identity, data, found))
            content = repr(data)
            if UNREADABLE in content or not garbled.isdisjoint(_named(data)):
                found.bad_rows.append(_garbled(place, identity, data))
                continue
            fingerprint = records.new((identity, content, self._image(data), *categories))
            if fingerprint is None:
                used.update(categories)
                continue
            parts = _Parts(categories, place, counted)
            item = self._offered(identity, data, parts, found, rules)
            if isinstance(item, BadRow):
                found.bad_rows.append(item)
            elif item is not None:
                found.items[identity] = item
                found.fingerprints[identity] = fingerprint
                found.places[identity] = place
                used.update(categories)
        for identity, name in categories_by_id.items():
            if identity in used:
                found.categories[identity] = Category(identity, name)
                found.part_places[identity] = _("{name}, category {identity}").format(
                    name=self.name, identity=identity
                )
        found.retain_groups(offered)
        found.facts = rules.facts(self.name)
        return found, records

    def _of_type(self, kind: str) -> Iterator[tuple[str, Object]]:
        yield from self.objects.get(kind, {}).items()

    def _is_sold(self, each: Object) -> bool:
        return not part_of(each, "item_data").get("is_archived") and self._is_here(each)

    def _is_here(self, each: Object) -> bool:
        if not self.location:
            return True
        if each.get("present_at_all_locations", True):
            return self.location not in ids_in(each, "absent_at_location_ids")
        return self.location in ids_in(each, "present_at_location_ids")

    def _categories(self, data: Object) -> tuple[str, ...]:
        """Return the ids of the categories that an item names, and there are."""
        known = self.objects.get("CATEGORY", {})
        named = [str(each.get("id")) for each in dicts_in(data.get("categories"))]
        named.append(str(data.get("category_id")))
        there = [each for each in named if each in known]
        return tuple(dict.fromkeys(there)) if there else ()

    def _offered(
        self, identity: str, data: Object, parts: "_Parts", found: CatalogFound, rules: SaleRules
    ) -> Item | BadRow | None:
        """Return the item as it is sold, what is wrong with it, or None for what is not sold."""
        try:
            item = self._item(identity, data, parts, found, rules)
            return None if item is None else rules.offered(item, parts.place)
        except NotForSale as refused:
            return BadRow(parts.place, refused.text, refused.fix, identity, "price_money")
        except RowError as wrong:
            return wrong.at(parts.place, identity)

    def _item(
        self, identity: str, data: Object, parts: "_Parts", found: CatalogFound, rules: SaleRules
    ) -> Item | None:
        name = one_line(str(data.get("name") or ""))
        if not name:
            raise RowError("name", "", _("It has no name."), _("Give the item a name in Square."))
        variations = self._variations(data)
        if not variations:
            return None
        groups = tuple(self._groups(identity, data, found))
        in_choice = rules.have_priced_choice(groups)
        variants = self._variants(variations, name, parts.place, rules, price_in_choice=in_choice)
        return Item(
            external_id=identity,
            name=name,
            price=min([variant.price for variant in variants]),
            description=_description(data),
            image_url=self._image(data),
            available=any(variant.available for variant in variants),
            categories=parts.categories,
            addon_groups=groups,
            variants=variants if len(variations) > 1 else (),
            tax=self._tax(data, parts.taxes),
            menus=(self.menu,),
        )

    def _variations(self, data: Object) -> Sequence[Object]:
        """Return those that are sold here."""
        return [
            each
            for each in dicts_in(data.get("variations"))
            if not each.get("is_deleted")
            and self._is_here(each)
            and part_of(each, "item_variation_data").get("sellable", True)
        ]

    def _owner(self, owners: dict[str, str], identity: str, data: Object) -> tuple[str, str] | None:
        """Claim the ids of an item; return the first that is taken, and the item that has it."""
        ids = [identity, *(str(each.get("id")) for each in self._variations(data))]
        for at, each in enumerate(ids):
            if each in owners or each in ids[:at]:
                return each, owners.get(each, identity)
        owners |= dict.fromkeys(ids, identity)
        return None

    def _variants(
        self,
        variations: Sequence[Object],
        item: str,
        place: str,
        rules: SaleRules,
        *,
        price_in_choice: bool,
    ) -> tuple[Variant, ...]:
        def variant(each: Object) -> Variant:
            return self._variant(each, item, price_in_choice=price_in_choice)

        return sizes_of(variations, variant, lambda _each: place, rules)

    def _variant(self, each: Object, item: str, *, price_in_choice: bool) -> Variant:
        data = part_of(each, "item_variation_data")
        here = self._override(data)
        name = one_line(str(data.get("name") or ""))
        pricing = here.get("pricing_type") or data.get("pricing_type")
        money = part_of(here, "price_money") or part_of(data, "price_money")
        amount = amount_of(money.get("amount"))
        if pricing == "VARIABLE_PRICING" or amount is None:
            if not price_in_choice:
                full = f"{item} ({name})" if name else item
                raise VariablePrice(
                    full,
                    "price_money",
                    "",
                    _('"{name}" has a variable price: a storefront cannot sell it.').format(
                        name=full
                    ),
                    _("Give it a price in Square, archive it, or sell it at the counter only."),
                )
            amount = 0
        if money.get("currency", self.currency) != self.currency:
            full = f"{item} ({name})" if name else item
            raise RowError(
                "price_money",
                str(money["currency"]),
                _('"{name}" has a price in {currency}.').format(
                    name=full, currency=money["currency"]
                ),
                _("Correct the store's currency ({currency}) in bridge.toml.").format(
                    currency=self.currency
                ),
            )
        sold_out = bool(here.get("sold_out"))
        return Variant(str(each.get("id")), name or item, amount, available=not sold_out)

    def _override(self, data: Object) -> Object:
        """Return what the location says otherwise."""
        for each in dicts_in(data.get("location_overrides")):
            if each.get("location_id") == self.location:
                return each
        return {}

    def _groups(self, identity: str, data: Object, found: CatalogFound) -> Iterator[str]:
        for info in dicts_in(data.get("modifier_list_info")):
            name = str(info.get("modifier_list_id"))
            listed = found.groups.get(name)
            if info.get("enabled") is False or (listed is None and name not in found.refused):
                continue
            if listed is None:
                raise RowError(
                    "modifier_list_info",
                    name,
                    _("It has a modifier list that cannot be offered: {refused}.").format(
                        refused=found.refused[name]
                    ),
                    _("Correct the modifier list in Square, and export again."),
                )
            least = number_or(info.get("min_selected_modifiers"), listed.min_select)
            most = number_or(info.get("max_selected_modifiers"), listed.max_select)
            most = most or len(listed.add_ons)
            if least > min(most, len(listed.add_ons)):
                raise RowError(
                    "modifier_list_info",
                    name,
                    _(
                        'Nobody can choose from its modifier list "{name}": it wants {least}, '
                        "allows {most} and offers {n}."
                    ).format(name=listed.name, least=least, most=most, n=len(listed.add_ons)),
                    _("Correct the numbers in Square, and export again."),
                )
            if (least, most) == (listed.min_select, listed.max_select):
                yield listed.external_id
                continue
            # An item of its own mind gets a group of its own: a group has one least and one most.
            own = AddOnGroup(
                external_id=f"{listed.external_id}/{identity}",
                name=listed.name,
                min_select=least,
                max_select=most,
                required=least > 0,
                add_ons=listed.add_ons,
            )
            found.groups[own.external_id] = own
            found.part_places[own.external_id] = found.part_places[name]
            yield own.external_id

    def _groups_named(self, identity: str, data: Object, found: CatalogFound) -> Sequence[str]:
        """Return the groups of an item; those it names, where it cannot be sold with them."""
        try:
            return tuple(self._groups(identity, data, found))
        except RowError:
            return [
                str(info.get("modifier_list_id"))
                for info in dicts_in(data.get("modifier_list_info"))
            ]

    def _take_list(self, identity: str, each: Object, found: CatalogFound) -> None:
        data = part_of(each, "modifier_list_data")
        add_ons = []
        for modifier in dicts_in(data.get("modifiers")):
            if modifier.get("is_deleted") or not self._is_here(modifier):
                continue
            fields = part_of(modifier, "modifier_data")
            money = part_of(self._override(fields), "price_money") or part_of(fields, "price_money")
            price = 0 if money.get("amount") is None else amount_of(money["amount"])
            name = one_line(str(fields.get("name") or ""))
            if price is None:
                found.refused[identity] = _(
                    '"{name}" has a price that is none, or below zero'
                ).format(name=name)
                return
            add_ons.append(AddOn(str(modifier.get("id")), name, price))
            found.part_places[add_ons[-1].external_id] = found.part_places[identity]
        if not add_ons:  # a text that the customer would write
            return
        single = data.get("selection_type") == "SINGLE"
        least = number_or(data.get("min_selected_modifiers"), 0)
        most = number_or(data.get("max_selected_modifiers"), 1 if single else 0) or len(add_ons)
        found.add_ons |= {add_on.external_id: add_on for add_on in add_ons}
        found.groups[identity] = AddOnGroup(
            external_id=identity,
            name=one_line(str(data.get("name") or identity)),
            min_select=least,
            max_select=most,
            required=least > 0,
            add_ons=tuple(add_on.external_id for add_on in add_ons),
        )

    def _tax(self, data: Object, counted: AbstractSet[str]) -> ItemTax | None:
        if not data.get("tax_ids"):
            return None
        taxes = self.objects.get("TAX", {})
        listed = [
            part_of(taxes[identity], "tax_data")
            for identity in ids_in(data, "tax_ids")
            if identity in taxes and identity in counted and self._is_here(taxes[identity])
        ]
        components = [
            TaxComponent(str(tax.get("name") or ""), _rate(tax))
            for tax in listed
            if tax.get("enabled", True)
        ]
        return tax_of(components)

    def _image(self, data: Object) -> str:
        images = self.objects.get("IMAGE", {})
        for identity in ids_in(data, "image_ids"):
            if identity in images:
                return str(part_of(images[identity], "image_data").get("url") or "")
        return ""


def _named(data: Object) -> Iterator[str]:
    """Yield the ids of what an item names."""
    yield str(data.get("category_id"))
    for each in dicts_in(data.get("categories")):
        yield str(each.get("id"))
    for each in dicts_in(data.get("modifier_list_info")):
        yield str(each.get("modifier_list_id"))
    yield from ids_in(data, "tax_ids")


def _garbled(place: str, identity: str, data: Object) -> BadRow:
    path, value = next(_unreadable_in(data, "item_data"), ("", ""))
    what = path or _("What it names (a category, modifier list or tax)")
    return BadRow(
        place=place,
        text=_("{what} holds a character that cannot be read.").format(what=what),
        fix=_("Correct it in Square and save the catalog again, as UTF-8."),
        external_id=identity,
        field=path,
        value=value,
    )


def _unreadable_in(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield the texts that hold what could not be decoded, each with its path."""
    if isinstance(value, str) and UNREADABLE in value:
        yield path, value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _unreadable_in(part, f"{path}.{name}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _unreadable_in(part, f"{path}[{number}]")


def _twice(place: str, identity: str, taken: str, owner: str) -> BadRow:
    return BadRow(
        place=place,
        text=_("The id {taken!r} stands for something else already, of item {owner!r}.").format(
            taken=taken, owner=owner
        ),
        fix=_("Remove one of the two from the file, or save the catalog again."),
        external_id=identity,
        field="id",
        value=taken,
    )


def _rate(tax: Object) -> str:
    """Return the percentage as it stands there. Raises RowError for one that is no number."""
    written = str(tax.get("percentage") or "0")
    try:
        rate = parse_decimal(written)
    except ValueError:
        rate = Decimal(-1)
    if rate < 0:
        raise RowError(
            "percentage",
            written[:40],
            _('Its tax "{name}" has the rate {written!r}, which is no percentage.').format(
                name=tax.get("name"), written=written[:40]
            ),
            _("Correct the tax in Square, and export again."),
        )
    return written


def _tax_name(each: Object) -> str:
    return str(part_of(each, "tax_data").get("name") or "")


def _description(data: Object) -> str:
    """Return it as text: Square keeps it so, with mark-up, and in a field that may have some."""
    for key in ("description_plaintext", "description_html", "description"):
        if data.get(key):
            text = str(data[key])
            return text.strip() if key == "description_plaintext" else without_markup(text)
    return ""
