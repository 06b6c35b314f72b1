"""`tillbridge connect`: the merchant consents, and the store is integrated with this bridge."""

from typing import Annotated

import typer

from tillbridge.cli.consenting import Wish, connect_store
from tillbridge.cli.menu import Json, Store
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.i18n import _

NoBrowser = Annotated[
    bool, typer.Option("--no-browser", help=_("Only print the address; open no browser."))
]


def connect(
    context: typer.Context,
    store: Store,
    no_browser: NoBrowser = False,
    store_id: Annotated[
        str,
        typer.Option(
            "--store-id", metavar="ID", help=_("Which of the merchant's stores it is, by its id.")
        ),
    ] = "",
    email: Annotated[
        str,
        typer.Option("--email", metavar="EMAIL", help=_("The merchant's e-mail, to sign in with.")),
    ] = "",
    reintegrate: Annotated[
        bool,
        typer.Option(
            "--reintegrate",
            help=_("Remove the integration and make it anew: gives a new webhook secret."),
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Let the merchant allow this bridge to work for a store, and integrate it.

    Prints an address for the merchant to open, and waits up to ten minutes. Where the merchant
    has several stores you choose one. Safe to repeat, also while the bridge runs: do it once a
    week, since a consent lasts 7 days.

    Example: tillbridge connect main
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    wish = Wish(store, store_id=store_id, email=email, reintegrate=reintegrate, as_json=as_json)
    connect_store(loaded, wish, browser=not no_browser)
