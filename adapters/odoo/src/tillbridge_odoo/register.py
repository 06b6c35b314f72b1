"""The point of sale in Odoo (`pos.config`) that the store works with, and its open session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tillbridge.adapter.texts import _
from tillbridge_odoo.odoo import Domain, Odoo, Record

_CONFIG = (
    "name",
    "active",
    "company_id",
    "currency_id",
    "module_pos_restaurant",
    "limit_categories",
    "iface_available_categ_ids",
    "payment_method_ids",
    "floor_ids",
    "pricelist_id",
    "use_pricelist",
    "tip_product_id",
    "iface_tipproduct",
    "discount_product_id",
    "down_payment_product_id",
    "picking_type_id",
    "write_date",
)


class NoSuchRegister(Exception):
    """The option `pos` names no point of sale, or has to, since there are several."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(text)
        self.text = text
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Register:
    """A point of sale. `special` are the products of tips, discounts and down payments.

    `categories` is empty where it sells all of them. `tip_product` is the product of tips where
    the screen takes tips, and so loads it in any case.
    """

    id: int
    name: str
    company: int
    currency: str
    restaurant: bool
    categories: tuple[int, ...]
    payment_methods: tuple[int, ...]
    floors: tuple[int, ...]
    pricelist: int | None
    special: tuple[int, ...]
    picking_type: int | None
    changed: str
    tip_product: int | None = None
    language: str | None = None

    @property
    def context(self) -> Mapping[str, Any]:
        """What every question is asked with: as a user of this company, in our language."""
        company = {"allowed_company_ids": [self.company]}
        return company if self.language is None else {**company, "lang": self.language}

    def of_company(self, domain: Domain) -> list[object]:
        """Return the domain, for records of this company or of all."""
        return [*domain, ["company_id", "in", [False, self.company]]]


@dataclass(frozen=True, slots=True)
class Session:
    """An open session of a point of sale; `next_number` is the one its next order gets."""

    id: int
    name: str
    next_number: int = 1


def find_register(odoo: Odoo, wanted: int | str | None) -> Register:
    """Return the point of sale of that name or id, or the only one. Raises NoSuchRegister."""
    found = odoo.read("pos.config", [["active", "=", True]], _CONFIG)
    names = ", ".join(f"{each['name']} ({each['id']})" for each in found) or _("none")
    if wanted is None:
        if len(found) != 1:
            raise NoSuchRegister(
                _("Odoo has {n} points of sale: {names}.").format(n=len(found), names=names),
                _("Name one in the option {option}.").format(option="pos"),
            )
        return _register(found[0], odoo.language())
    for each in found:
        if wanted in (each["id"], each["name"]) or str(wanted) == str(each["id"]):
            return _register(each, odoo.language())
    raise NoSuchRegister(
        _("Odoo has no point of sale {wanted!r}; there are: {names}.").format(
            wanted=wanted, names=names
        ),
        _("Correct the option {option}.").format(option="pos"),
    )


def open_session(odoo: Odoo, register: Register) -> Session | None:
    """Return the session that takes orders now; None where the point of sale is closed.

    Sessions that Odoo makes itself to save lost orders (`rescue`) do not count.
    """
    domain: list[object] = [["config_id", "=", register.id], ["state", "=", "opened"]]
    if "rescue" in odoo.fields("pos.session"):
        domain.append(["rescue", "=", False])
    fields = ["name", "sequence_number"]
    found = odoo.read("pos.session", domain, fields, order="id desc", limit=1)
    if not found:
        return None
    session = found[0]
    return Session(session["id"], str(session["name"]), int(session.get("sequence_number") or 1))


def next_number(odoo: Odoo, session: Session) -> int:
    """Return the number of the session's next order, which staff calls it by."""
    last = odoo.read(
        "pos.order",
        [["session_id", "=", session.id]],
        ["sequence_number"],
        order="sequence_number desc",
        limit=1,
    )
    return max([session.next_number, *(int(each["sequence_number"] or 0) + 1 for each in last)])


def rounds_once(odoo: Odoo, register: Register) -> bool:
    """Return whether the company rounds a tax once an order, and not line by line."""
    found = odoo.read(
        "res.company", [["id", "=", register.company]], ["tax_calculation_rounding_method"]
    )
    return any(each.get("tax_calculation_rounding_method") == "round_globally" for each in found)


def number(value: object) -> int | None:
    """Return the id in a many2one: `[5, "POS/00005"]`, 5, or False for none."""
    if isinstance(value, list | tuple) and value:
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def label(value: object) -> str:
    """Return the name in a many2one; "" for none."""
    return str(value[1]) if isinstance(value, list | tuple) and len(value) > 1 else ""


def text(value: object) -> str:
    """Return the text of a field; Odoo says False for an empty one."""
    return value if isinstance(value, str) else ""


def _register(record: Record, language: str | None) -> Register:
    special = ("tip_product_id", "discount_product_id", "down_payment_product_id")
    limited = bool(record.get("limit_categories"))
    priced = bool(record.get("use_pricelist", True))
    return Register(
        id=record["id"],
        name=str(record["name"]),
        company=number(record["company_id"]) or 0,
        currency=label(record["currency_id"]),
        restaurant=bool(record.get("module_pos_restaurant")),
        categories=tuple(record.get("iface_available_categ_ids") or ()) if limited else (),
        payment_methods=tuple(record.get("payment_method_ids") or ()),
        floors=tuple(record.get("floor_ids") or ()),
        pricelist=number(record.get("pricelist_id")) if priced else None,
        special=tuple(
            each for each in (number(record.get(name)) for name in special) if each is not None
        ),
        picking_type=number(record.get("picking_type_id")),
        changed=text(record.get("write_date")),
        tip_product=number(record.get("tip_product_id"))
        if record.get("iface_tipproduct")
        else None,
        language=language,
    )
