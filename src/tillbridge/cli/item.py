"""`tillbridge item ...`: staff take an item off sale, over what the POS says, and put it back."""

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Arguments, add_operations
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer
from tillbridge.operations import items

app = typer.Typer(help=_("Take items off sale and put them back."), no_args_is_help=True)


def _show_off(answer: Answer, _given: Arguments) -> None:
    if not answer["items"]:
        say.line(_("Everything is on sale."))
        return
    heads = [_("ID"), _("NAME"), _("SINCE"), _("UNTIL"), _("BY"), _("AT THE STOREFRONT")]
    say.table(heads, [_cells(each) for each in answer["items"]])


def _cells(item: Answer) -> list[str]:
    return [
        item["external_id"],
        f"{item['name']} {item['variant']}".strip(),
        say.local_time(item["since"]) or "?",
        say.local_time(item["until"]) or "-",
        items.taken_off_by(item),
        items.reached(item),
    ]


def _show_found(answer: Answer, _given: Arguments) -> None:
    if not answer["items"]:
        say.line(_("The menu has nothing like that."))
        return
    heads = [_("ID"), _("NAME"), _("PRICE"), _("ON SALE")]
    rows = [
        [
            each["external_id"],
            f"{each['name']} {each['variant']}".strip(),
            f"{each['price']} {each['currency']}",
            _("yes") if each["on_sale"] else _("no"),
        ]
        for each in answer["items"]
    ]
    say.table(heads, rows)


add_operations(app, "item", {"items.off": _show_off, "items.find": _show_found})
