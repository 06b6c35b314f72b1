"""Whether a point of sale is set up so that staff sees its online orders, whole."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tillbridge.adapter import Advice
from tillbridge.adapter.texts import _
from tillbridge_odoo.odoo import Odoo
from tillbridge_odoo.options import OdooOptions
from tillbridge_odoo.products import amount_products
from tillbridge_odoo.register import Register
from tillbridge_odoo.tables import RestaurantTable, read_tables, tables_called

_UNSEEN = _(
    "Staff would not see online orders: the screen of an Odoo 17 restaurant shows an open order"
    " only on a table."
)
_UNSEEN_FIX = _(
    'Make a table for online orders in Odoo, such as "Online", and name it: online_table ='
    ' "Online". Or have orders written as paid: orders = "paid".'
)
_LATE = _(
    "The screen of this point of sale shows a new online order only after its page is loaded anew."
)
_LATE_FIX = _(
    "Switch on self-ordering for a point of sale of the company, so that Orders on the screen lists"
    ' them; or write orders = "paid".'
)


@dataclass(frozen=True, slots=True)
class OnlineTable:
    """The table of orders that name none. `refusal` says why none may be written without it."""

    table: RestaurantTable | None = None
    refusal: Advice | None = None


def is_17(odoo: Odoo) -> bool:
    """Return whether this is 17 or before: orders are known by their receipt number alone."""
    return "uuid" not in odoo.fields("pos.order")


def online_table(
    odoo: Odoo, register: Register, options: OdooOptions, tables: Sequence[RestaurantTable]
) -> OnlineTable:
    """Return the table that open orders without one are put on; 17 alone needs it."""
    if options.orders == "paid" or not register.restaurant or not is_17(odoo):
        return OnlineTable()
    if options.online_table is None:
        return OnlineTable(refusal=Advice(_UNSEEN, _UNSEEN_FIX))
    found = tables_called(tables, options.online_table)
    if len(found) == 1:
        return OnlineTable(found[0])
    names = ", ".join(each.name for each in found or tables) or _("none")
    what = (
        _("{name} has several tables {online_table!r}: {names}.")
        if found
        else _("{name} has no table {online_table!r}; there are: {names}.")
    )
    return OnlineTable(
        refusal=Advice(
            what.format(name=register.name, online_table=options.online_table, names=names),
            _("Name one of its tables in the option online_table, or make it in Odoo."),
        )
    )


def advice_on(odoo: Odoo, register: Register, options: OdooOptions) -> tuple[Advice, ...]:
    """Return what spoils orders although they are written."""
    return tuple(_advice(odoo, register, options))


def refusal_of(odoo: Odoo, register: Register, options: OdooOptions) -> Advice | None:
    """Return why no order may be written, None where all is well."""
    tables = read_tables(odoo, register, register.context)
    return online_table(odoo, register, options, tables).refusal


def _advice(odoo: Odoo, register: Register, options: OdooOptions) -> Iterator[Advice]:
    settles_on_screen = options.orders == "draft" and is_17(odoo)
    for each in amount_products(odoo, register, options):
        if each.product is None:
            yield Advice(
                _("Odoo has no product {wanted!r}, which the option {option} names.").format(
                    wanted=each.wanted, option=each.option
                ),
                _("Correct the option {option}.").format(option=each.option),
            )
        elif settles_on_screen and each.dropped:
            yield Advice(
                _(
                    "Staff who settle an order lose what {name} stands for: the point of "
                    "sale does not load that product, since {dropped}."
                ).format(name=each.name, dropped=each.dropped),
                _(
                    "In Odoo let the product {name} be sold, be Available in POS, and be "
                    "in a category of the point of sale. The storefront does not offer it."
                ).format(name=each.name),
            )
    if settles_on_screen and not register.restaurant and not _has_self_ordering(odoo, register):
        yield Advice(_LATE, _LATE_FIX)
    if options.language is not None and not _has_language(odoo, options.language):
        yield Advice(
            _("Odoo does not have the language {language}: names come in another one.").format(
                language=options.language
            ),
            _("Install it in Odoo (Settings, Languages), or correct the option language."),
        )


def _has_self_ordering(odoo: Odoo, register: Register) -> bool:
    if "self_ordering_mode" not in odoo.fields("pos.config"):
        return False
    found = odoo.read("pos.config", [["company_id", "=", register.company]], ["self_ordering_mode"])
    return any(each["self_ordering_mode"] not in {False, "nothing"} for each in found)


def _has_language(odoo: Odoo, code: str) -> bool:
    if not odoo.has_model("res.lang"):
        return True
    return bool(odoo.search("res.lang", [["code", "=", code], ["active", "=", True]]))
