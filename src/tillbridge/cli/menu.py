"""`tillbridge menu ...`: what would be pushed, pushing now, a hold, and how it all was."""

from typing import Annotated

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.reach import Answer, ask
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.i18n import _, ngettext

app = typer.Typer(help=_("See, push and approve menu changes."), no_args_is_help=True)

Store = Annotated[
    str,
    typer.Argument(
        metavar="STORE", help=_("The store's name in bridge.toml."), autocompletion=complete.stores
    ),
]
Json = Annotated[bool, typer.Option("--json", help=_("Answer as JSON."))]

_SHOWN = 50


@app.command()
def plan(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """Show what would be pushed now, as a difference; nothing is pushed.

    Example: tillbridge menu plan main
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("GET", "stores", store, "plan"),
        lambda control: control.menu.plan(store),
    )
    if as_json:
        say.document(answer)
    else:
        _show(answer)


@app.command()
def push(
    context: typer.Context,
    store: Store,
    full: Annotated[
        bool, typer.Option("--full", help=_("Everything, not only what differs."))
    ] = False,
    as_json: Json = False,
) -> None:
    """Push the menu now, without waiting for the export to change.

    A change that is held stays held: release it with menu approve.

    Example: tillbridge menu push main --full
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "push", body={"full": full}),
        lambda control: control.menu.push(store, full=full),
    )
    say.answered(answer, as_json=as_json)
    _end(answer)


@app.command()
def approve(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """Release the menu change that waits for a person.

    Only that very change: if the export changes meanwhile, it is looked at anew.

    Example: tillbridge menu approve main
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "approve", body={}),
        lambda control: control.menu.approve(store),
    )
    say.answered(answer, as_json=as_json)
    _end(answer)


@app.command()
def dismiss(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """Dismiss the menu change that waits: the storefront stays as it is.

    This very change is not offered again; what the till tells next is looked at anew.

    Example: tillbridge menu dismiss main
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "dismiss", body={}),
        lambda control: control.menu.dismiss(store),
    )
    say.answered(answer, as_json=as_json)
    _end(answer)


@app.command()
def history(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """List the latest pushes: what was told, how it ended, how long it took.

    Example: tillbridge menu history main
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("GET", "stores", store, "pushes"),
        lambda control: control.menu.history(store),
    )
    if as_json:
        say.document(answer)
    elif not answer["pushes"]:
        say.line(_("Nothing was ever pushed."))
    else:
        from tillbridge.web.push_words import how_long, told, what

        say.table(
            [_("WHEN"), _("WHAT"), _("ENDED"), _("TOOK"), _("THE SERVICE SAID")],
            [
                [
                    say.local_time(each["started_at"]),
                    what(each),
                    told(each),
                    how_long(each),
                    each["message"],
                ]
                for each in answer["pushes"]
            ],
        )


@app.command()
def items(
    context: typer.Context,
    store: Store,
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help=_("Part of a name, its initials, or an id."))
    ] = "",
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help=_("As it was then: 2026-11-21T18:30.")),
    ] = None,
    page: Annotated[int, typer.Option("--page", metavar="N", min=1, help=_("Which page."))] = 1,
    as_json: Json = False,
) -> None:
    """List what the storefront has, or had at a moment.

    Example: tillbridge menu items main pizza --at 2026-11-20T19:30
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    at_ms = None if at is None else _moment(at)
    body = {"text": text, "page": page, "at_ms": at_ms}
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "items", body=body),
        lambda control: control.menu.items(store, text=text, page=page, at_ms=at_ms),
    )
    if as_json:
        say.document(answer)
        return
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


def _moment(text: str) -> int:
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            _("{text} is no time: say 2026-11-21T18:30.").format(text=text), param_hint="--at"
        ) from None


def _end(answer: Answer) -> None:
    """End with 1 where the answer says that it was not done."""
    if answer.get("ok") is False:
        raise typer.Exit(1)


def _show(answer: Answer) -> None:
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
