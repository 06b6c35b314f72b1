"""`tillbridge item ...`: staff take an item off sale, over what the POS says, and put it back."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.menu import Json, Store
from tillbridge.cli.reach import ask
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.cli.until import until_ms
from tillbridge.i18n import _

if TYPE_CHECKING:
    from tillbridge.config import StoreSettings

app = typer.Typer(help=_("Take items off sale and put them back."), no_args_is_help=True)

_BY = "staff"
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
            help=_("Until when: 18:30, tomorrow, 2h, 2026-11-21T18:30. Else until restored."),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Take an item off sale, whatever the till says.

    Times are the store's local time; "tomorrow" is its next midnight.

    Example: tillbridge item 86 main B1 --until 18:30
    """
    loaded = load_settings(context)
    end = _end(until, store_of(loaded, store))
    body = {"external_id": external_id, "until_ms": end, "by": _BY}
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "86", body=body),
        lambda control: control.item_86(store, external_id, until_ms=end, by=_BY),
    )
    say.answered(answer, as_json=as_json)


@app.command()
def restore(context: typer.Context, store: Store, external_id: Item, as_json: Json = False) -> None:
    """Lift the staff's word on an item: what the till says counts again.

    Example: tillbridge item restore main B1
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    body = {"external_id": external_id, "by": _BY}
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "restore", body=body),
        lambda control: control.item_restore(store, external_id, by=_BY),
    )
    say.answered(answer, as_json=as_json)


def _end(until: str | None, store: "StoreSettings") -> int | None:
    if until is None:
        return None
    from zoneinfo import ZoneInfo

    zone = None if store.timezone is None else ZoneInfo(store.timezone)
    try:
        return until_ms(until, now_ms=time.time_ns() // 1_000_000, zone=zone)
    except ValueError as slip:
        raise typer.BadParameter(f"{slip}.", param_hint="--until") from None
