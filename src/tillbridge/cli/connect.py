"""`tillbridge connect`, and what it shares with `signup`: the merchant's consent."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.control import NotRunning, find_running, os_user
from tillbridge.cli.exits import CommandFailed, exit_code_of_name
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings
from typing import Annotated

from tillbridge.cli.commands import Json, Store, perform
from tillbridge.cli.settings import load_settings, store_of

_POLL_S = 0.5
CONSENT_S = 600.0
SIGNUP_S = 3600.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants connected. `form` and `flow_type` belong to a signup."""

    store: str
    store_id: str = ""
    email: str = ""
    reintegrate: bool = False
    form: dict[str, str] | None = None
    flow_type: str = ""
    as_json: bool = False

    def tell(self, text: str) -> None:
        """Tell the person something; beside the answer where that is JSON."""
        if self.as_json:
            say.aside(text)
        else:
            say.line(text)

    @property
    def wait_s(self) -> float:
        """How long the merchant may take."""
        return CONSENT_S if self.form is None else SIGNUP_S


# Performs an operation, in the running bridge or here, and returns its answer.
Perform = Callable[..., Answer]


def connect_store(loaded: "LoadedSettings", wish: Wish, *, browser: bool) -> None:
    """Carry a connection through, by the running bridge or here, and say what came of it."""
    running = find_running(loaded.data_dir)
    if running is not None:
        answer = _carried_through(running.perform, time.sleep, wish, browser=browser)
    else:
        from tillbridge import daemon

        with daemon.connecting(loaded, wish.store, user=os_user()) as session:
            answer = _carried_through(session.perform, session.wait, wish, browser=browser)
    if not answer.get("ok"):
        kind = str(answer.get("kind", ""))
        text, fix = str(answer.get("text", "")), str(answer.get("fix", ""))
        raise CommandFailed(text, fix=fix, exit_code=exit_code_of_name(kind))
    if wish.as_json:
        say.document(answer)
        return
    say.answered(answer)
    asks = answer.get("rotate") and sys.stdin.isatty()
    if asks and typer.confirm(_("Get a new webhook secret now?")):
        arguments = {"store": wish.store}
        perform(loaded, "integration.rotate_secret", arguments, say.answered, as_json=False)
    if wish.store_id or "chosen" in answer:
        say.line(
            _('So that everybody sees it, put into [stores.{store}]: store_id = "{id}"').format(
                store=wish.store, id=answer["store_id"]
            )
        )
    if answer.get("webhook_url"):
        say.line(_("Deliveries go to: {url}").format(url=answer["webhook_url"]))
    if running is None:
        say.line(_("Next: tillbridge run, or start the service."))


def _carried_through(
    perform: Perform, wait: Callable[[float], None], wish: Wish, *, browser: bool
) -> Answer:
    if wish.form is not None:
        begun = perform("signup", store=wish.store, form=wish.form, flow_type=wish.flow_type)
    else:
        begun = perform(
            "connect",
            store=wish.store,
            reintegrate=wish.reintegrate,
            store_id=wish.store_id,
            email=wish.email,
        )
    invite(wish, begun["url"], browser=browser, as_login=begun.get("as_login") is True)
    answer = _result(perform, wait, begun["state"], wish.wait_s)
    if "choose" not in answer or not (store_id := choose(wish, answer["choose"])):
        return answer
    chosen = perform(
        "connect.choose", store=wish.store, store_id=store_id, reintegrate=wish.reintegrate
    )
    return {**chosen, "chosen": store_id}


def _result(perform: Perform, wait: Callable[[float], None], state: str, wait_s: float) -> Answer:
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        try:
            answer = perform("connect.result", state=state)
        except NotRunning:
            raise CommandFailed(
                _("The bridge stopped while the merchant was asked."),
                fix=_("Start it and try again."),
            ) from None
        if answer.get("done"):
            return answer
        wait(_POLL_S)
    raise CommandFailed(
        _("Nobody consented in time."), fix=_("Try again when the merchant is there.")
    )


def invite(wish: Wish, url: str, *, browser: bool, as_login: bool) -> None:
    """Tell the person the address, on a line of its own, and open it in a browser if wanted."""
    if as_login:
        wish.tell(_("A merchant with this e-mail exists already, and signs in instead."))
    wish.tell(_("Open: {url}").format(url=url))
    if browser:
        import webbrowser

        try:
            webbrowser.open(url)
        except webbrowser.Error:
            wish.tell(_("No browser could be opened here: open the address yourself."))
    wish.tell(
        _(
            "Waiting for the merchant's consent, for up to {minutes} minutes (Ctrl-C ends it)."
        ).format(minutes=round(wish.wait_s / 60))
    )


def choose(wish: Wish, stores: list[dict[str, Any]]) -> str:
    """Let a person choose one of the merchant's stores; "" where nobody is there to ask."""
    if not sys.stdin.isatty():
        return ""
    wish.tell(_("The merchant has several stores. Which one is this?"))
    for number, store in enumerate(stores, 1):
        name = say.clean(store["name"] or "?")
        states = ", ".join(
            say.clean(store[key]) for key in ("status", "integration_status") if store[key]
        )
        wish.tell(f"  {number}. {name}  {say.clean(store['store_id'])}  ({states})")
    while True:
        number = typer.prompt(_("Number"), err=wish.as_json).strip()
        if number.isdecimal() and 1 <= int(number) <= len(stores):
            return str(stores[int(number) - 1]["store_id"])
        wish.tell(_("Type a number from 1 to {last}.").format(last=len(stores)))


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
