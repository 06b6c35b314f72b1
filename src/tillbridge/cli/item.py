"""`tillbridge item ...`: staff take an item off sale, over what the POS says, and put it back."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.control import os_user
from tillbridge.cli.menu import Json, Store
from tillbridge.cli.reach import Answer, ask
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.cli.until import until_ms
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings, StoreSettings

app = typer.Typer(help=_("Take items off sale and put them back."), no_args_is_help=True)

Item = Annotated[
    str,
    typer.Argument(
        metavar="EXTERNAL_ID",
        help=_("The item's id in the till (external_id)."),
        autocompletion=complete.items,
    ),
]


@app.command("86")
def eighty_six(
    context: typer.Context,
    store: Store,
    external_id: Item,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help=_(
                "Until when: 18:30, opening, tomorrow, 2h, 2026-11-21T18:30. Else until restored."
            ),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Take an item off sale, whatever the till says.

    Times are the store's local time; "tomorrow" is its next midnight, "opening" the first opening
    of its next day.

    Example: tillbridge item 86 main B1 --until 18:30
    """
    loaded = load_settings(context)
    settings, by = store_of(loaded, store), f"command:{os_user()}"
    if until is not None and until.strip().lower() == "opening":
        end: int | None = _off(loaded, store)["ends"]["opening_ms"]
    else:
        end = _end(until, settings)
    body = {"external_id": external_id, "until_ms": end, "by": by}
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "86", body=body),
        lambda control: control.items.take_off(store, external_id, until_ms=end, by=by),
    )
    say.answered(answer, as_json=as_json)


@app.command()
def restore(context: typer.Context, store: Store, external_id: Item, as_json: Json = False) -> None:
    """Lift the staff's word on an item: what the till says counts again.

    Example: tillbridge item restore main B1
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    body = {"external_id": external_id}
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "restore", body=body),
        lambda control: control.items.restore(store, external_id),
    )
    say.answered(answer, as_json=as_json)


@app.command()
def off(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """List what is off sale: since when, until when, by whom, and when the storefront had it.

    Example: tillbridge item off main
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    answer = _off(loaded, store)
    if as_json:
        say.document(answer)
    elif not answer["items"]:
        say.line(_("Everything is on sale."))
    else:
        heads = [_("ID"), _("NAME"), _("SINCE"), _("UNTIL"), _("BY"), _("AT THE STOREFRONT")]
        say.table(heads, [_cells(each) for each in answer["items"]])


@app.command()
def find(
    context: typer.Context,
    store: Store,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help=_("Part of a name, its initials, or an id."))
    ],
    as_json: Json = False,
) -> None:
    """Find items of the menu by a few letters, with the id that item 86 takes.

    Example: tillbridge item find main pm
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "items", "find", body={"text": text}),
        lambda control: control.items.find(store, text),
    )
    if as_json:
        say.document(answer)
    elif not answer["items"]:
        say.line(_("The menu has nothing like that."))
    else:
        say.table(
            [_("ID"), _("NAME"), _("PRICE"), _("ON SALE")],
            [
                [
                    each["external_id"],
                    f"{each['name']} {each['variant']}".strip(),
                    f"{each['price']} {each['currency']}",
                    _("yes") if each["on_sale"] else _("no"),
                ]
                for each in answer["items"]
            ],
        )


def _off(loaded: "LoadedSettings", store: str) -> Answer:
    return ask(
        loaded,
        lambda bridge: bridge.ask("GET", "stores", store, "items", "off"),
        lambda control: control.items.off(store),
    )


def _cells(item: Answer) -> list[str]:
    from tillbridge.web.item_words import by_whom, reached

    return [
        item["external_id"],
        f"{item['name']} {item['variant']}".strip(),
        say.local_time(item["since"]) or "?",
        say.local_time(item["until"]) or "-",
        by_whom(item),
        reached(item),
    ]


def _end(until: str | None, store: "StoreSettings") -> int | None:
    if until is None:
        return None
    from zoneinfo import ZoneInfo

    zone = None if store.timezone is None else ZoneInfo(store.timezone)
    try:
        return until_ms(until, now_ms=time.time_ns() // 1_000_000, zone=zone)
    except ValueError as slip:
        raise typer.BadParameter(f"{slip}.", param_hint="--until") from None
