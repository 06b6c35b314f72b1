"""`tillbridge connect`: the merchant consents, and the store is integrated with this bridge."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from tillbridge.cli import say
from tillbridge.cli.control import NotRunning, RunningBridge, find_running
from tillbridge.cli.exits import CommandFailed
from tillbridge.cli.menu import Store
from tillbridge.cli.reach import Answer
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.i18n import _

if TYPE_CHECKING:
    from tillbridge.configfile import LoadedSettings

_WAIT_S = 600.0
_POLL_S = 0.5


def connect(
    context: typer.Context,
    store: Store,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help=_("Only print the address; open no browser."))
    ] = False,
    reintegrate: Annotated[
        bool,
        typer.Option(
            "--reintegrate",
            help=_("Remove the integration and make it anew: gives a new webhook secret."),
        ),
    ] = False,
) -> None:
    """Let the merchant allow this bridge to work for a store, and integrate it.

    Prints an address for the merchant to open, and waits up to ten minutes. Safe to repeat, also
    while the bridge runs: do it once a week, since a consent lasts 7 days.

    Example: tillbridge connect main
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    running = find_running(loaded.data_dir)
    if running is None:
        answer = _by_itself(loaded, store, browser=not no_browser, reintegrate=reintegrate)
    else:
        answer = _through(running, store, browser=not no_browser, reintegrate=reintegrate)
    if not answer.get("ok"):
        raise CommandFailed(str(answer.get("text", "")), fix=str(answer.get("fix", "")))
    say.answered(answer)
    if answer.get("rotate"):
        from tillbridge.cli.integration import rotate_now

        rotate_now(loaded, store)
    if answer.get("webhook_url"):
        say.line(_("Deliveries go to: {url}").format(url=answer["webhook_url"]))
    if running is None:
        say.line(_("Next: tillbridge run, or start the service."))


def _through(running: RunningBridge, store: str, *, browser: bool, reintegrate: bool) -> Answer:
    begun = running.ask("POST", "connect", body={"store": store, "reintegrate": reintegrate})
    invite(begun["url"], browser=browser)
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        try:
            answer = running.ask("GET", "connect", begun["state"])
        except NotRunning:
            raise CommandFailed(
                _("The bridge stopped while the merchant was asked."),
                fix=_("Start it and try again."),
            ) from None
        if answer.get("done"):
            return answer
        time.sleep(_POLL_S)
    raise CommandFailed(
        _("Nobody consented within ten minutes."), fix=_("Try again when the merchant is there.")
    )


def _by_itself(loaded: "LoadedSettings", store: str, *, browser: bool, reintegrate: bool) -> Answer:
    import asyncio

    from tillbridge import daemon

    return asyncio.run(
        daemon.connect_alone(
            loaded,
            store,
            reintegrate=reintegrate,
            invite=lambda url: invite(url, browser=browser),
            wait_s=_WAIT_S,
        )
    )


def invite(url: str, *, browser: bool) -> None:
    """Tell the person the address, on a line of its own, and open it in a browser if wanted."""
    say.line(_("Open: {url}").format(url=url))
    if browser:
        import webbrowser

        try:
            webbrowser.open(url)
        except webbrowser.Error:
            say.line(_("No browser could be opened here: open the address yourself."))
    say.line(_("Waiting for the merchant's consent, for up to ten minutes (Ctrl-C ends it)."))
