"""`tillbridge menu ...`: what would be pushed, pushing now, a hold, and how it all was."""

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Arguments, add_operations
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer

app = typer.Typer(help=_("See, push and approve menu changes."), no_args_is_help=True)

_SHOWN = 50


def _show_pushes(answer: Answer, _given: Arguments) -> None:
    from tillbridge.web.push_words import how_long, told, what

    if not answer["pushes"]:
        say.line(_("Nothing was ever pushed."))
        return
    heads = [_("WHEN"), _("WHAT"), _("ENDED"), _("TOOK"), _("THE SERVICE SAID")]
    rows = [
        [
            say.local_time(each["started_at"]),
            what(each),
            told(each),
            how_long(each),
            each["message"],
        ]
        for each in answer["pushes"]
    ]
    say.table(heads, rows)


def _show_items(answer: Answer, _given: Arguments) -> None:
    say.table(
        [_("ID"), _("NAME"), _("PRICE"), _("ON SALE")],
        [
            [
                each["external_id"],
                f"{each['name']} {each['variant']}".strip(),
                f"{each['price']} {answer['currency']}",
                _("yes") if each["on_sale"] else _("no"),
            ]
            for each in answer["items"]
        ],
    )
    say.line(
        _("page {page} of {pages}, {n} in all").format(
            page=answer["page"],
            pages=answer["pages"],
            n=ngettext("{n} item", "{n} items", answer["items_count"]).format(
                n=answer["items_count"]
            ),
        )
    )


def _show_plan(answer: Answer, _given: Arguments) -> None:
    say.line(_head(answer))
    for reason in answer.get("held", ()):
        say.line("  ! " + say.clean(reason), level="warning")
    first = answer.get("first_import_lines", ())
    if first:
        say.line(_("  The storefront has no menu yet. This one comes to:"))
    for line in first:
        say.line("  * " + say.clean(line))
    lines = answer.get("lines", [])
    for line in lines[:_SHOWN]:
        say.line("  " + say.clean(line))
    if (more := len(lines) - _SHOWN) > 0:
        say.line("  " + _("... and {n} more (--json shows all)").format(n=more))
    for row in answer.get("bad_rows", ()):
        say.line("  ? " + say.clean(f"{row['place']}: {row['text']} {row['fix']}"), level="warning")


def _head(answer: Answer) -> str:
    if answer.get("held"):
        if answer.get("approved"):
            return _("This change is approved, and goes out with the next push:")
        return _("This change waits for a person (release it with: tillbridge menu approve):")
    calls = len(answer.get("calls", ()))
    if not calls:
        return _("Nothing to push: the service has the menu as the till has it.")
    return ngettext(
        "This would be pushed, in {n} call:", "This would be pushed, in {n} calls:", calls
    ).format(n=calls)


add_operations(
    app,
    "menu",
    {"menu.plan": _show_plan, "menu.history": _show_pushes, "menu.items": _show_items},
)
