"""`tillbridge connect` and `signup`: a merchant consents in a browser; the store is integrated."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, Store, option, perform
from tillbridge.cli.control import NotRunning, find_running, os_user
from tillbridge.cli.exits import CommandFailed, exit_code_of_name
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings


_POLL_S = 0.5
CONSENT_S = 600.0
SIGNUP_S = 3600.0


@dataclass(frozen=True, slots=True)
class ConnectRequest:
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


def connect_store(loaded: "LoadedSettings", request: ConnectRequest, *, browser: bool) -> None:
    """Carry a connection through, by the running bridge or here, and say what came of it."""
    running = find_running(loaded.data_dir)
    if running is not None:
        answer = _carried_through(running.perform, time.sleep, request, browser=browser)
    else:
        from tillbridge import daemon

        with daemon.connecting(loaded, request.store, user=os_user()) as session:
            answer = _carried_through(session.perform, session.wait, request, browser=browser)
    if not answer.get("ok"):
        kind = str(answer.get("kind", ""))
        text, fix = str(answer.get("text", "")), str(answer.get("fix", ""))
        raise CommandFailed(text, fix=fix, exit_code=exit_code_of_name(kind))
    if request.as_json:
        say.document(answer)
        return
    say.answered(answer)
    asks = answer.get("rotate") and sys.stdin.isatty()
    if asks and typer.confirm(_("Get a new webhook secret now?")):
        arguments = {"store": request.store}
        perform(loaded, "integration.rotate_secret", arguments, say.answered, as_json=False)
    if request.store_id or "chosen" in answer:
        say.line(
            _('So that everybody sees it, put into [stores.{store}]: store_id = "{id}"').format(
                store=request.store, id=answer["store_id"]
            )
        )
    if answer.get("webhook_url"):
        say.line(_("Deliveries go to: {url}").format(url=answer["webhook_url"]))
    if running is None:
        say.line(_("Next: tillbridge run, or start the service."))


def _carried_through(
    perform: Perform, wait: Callable[[float], None], request: ConnectRequest, *, browser: bool
) -> Answer:
    if request.form is not None:
        begun = perform(
            "signup", store=request.store, form=request.form, flow_type=request.flow_type
        )
    else:
        begun = perform(
            "connect",
            store=request.store,
            reintegrate=request.reintegrate,
            store_id=request.store_id,
            email=request.email,
        )
    invite(request, begun["url"], browser=browser, as_login=begun.get("as_login") is True)
    answer = _result(perform, wait, begun["state"], request.wait_s)
    if "choose" not in answer or not (store_id := choose(request, answer["choose"])):
        return answer
    chosen = perform(
        "connect.choose", store=request.store, store_id=store_id, reintegrate=request.reintegrate
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


def invite(request: ConnectRequest, url: str, *, browser: bool, as_login: bool) -> None:
    """Tell the person the address, on a line of its own, and open it in a browser if wanted."""
    if as_login:
        request.tell(_("A merchant with this e-mail exists already, and signs in instead."))
    request.tell(_("Open: {url}").format(url=url))
    if browser:
        import webbrowser

        try:
            webbrowser.open(url)
        except webbrowser.Error:
            request.tell(_("No browser could be opened here: open the address yourself."))
    request.tell(
        _(
            "Waiting for the merchant's consent, for up to {minutes} minutes (Ctrl-C ends it)."
        ).format(minutes=round(request.wait_s / 60))
    )


def choose(request: ConnectRequest, stores: list[dict[str, Any]]) -> str:
    """Let a person choose one of the merchant's stores; "" where nobody is there to ask."""
    if not sys.stdin.isatty():
        return ""
    request.tell(_("The merchant has several stores. Which one is this?"))
    for number, store in enumerate(stores, 1):
        name = say.clean(store["name"] or "?")
        states = ", ".join(
            say.clean(store[key]) for key in ("status", "integration_status") if store[key]
        )
        request.tell(f"  {number}. {name}  {say.clean(store['store_id'])}  ({states})")
    while True:
        number = typer.prompt(_("Number"), err=request.as_json).strip()
        if number.isdecimal() and 1 <= int(number) <= len(stores):
            return str(stores[int(number) - 1]["store_id"])
        request.tell(_("Type a number from 1 to {last}.").format(last=len(stores)))


NoBrowser = Annotated[bool, option("--no-browser", _("Only print the address; open no browser."))]


def connect(
    context: typer.Context,
    store: Store,
    no_browser: NoBrowser = False,
    store_id: Annotated[
        str,
        option("--store-id", _("Which of the merchant's stores it is, by its id."), "ID"),
    ] = "",
    email: Annotated[
        str,
        option("--email", _("The merchant's e-mail, to sign in with."), "EMAIL"),
    ] = "",
    reintegrate: Annotated[
        bool,
        option(
            "--reintegrate",
            _("Remove the integration and make it anew: gives a new webhook secret."),
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
    request = ConnectRequest(
        store, store_id=store_id, email=email, reintegrate=reintegrate, as_json=as_json
    )
    connect_store(loaded, request, browser=not no_browser)


class Flow(StrEnum):
    """Which prompt the merchant gets, for the choice on the command line."""

    AUTO = "auto"
    LOGIN = "login"
    SIGNUP = "signup"


def signup(  # noqa: PLR0913, PLR0917 -- one option for each field of the specification
    context: typer.Context,
    store: Store,
    store_name: Annotated[str, option("--store-name", _("What guests call it."), "NAME")] = "",
    email: Annotated[str, option("--email", _("The merchant's e-mail."), "EMAIL")] = "",
    first_name: Annotated[
        str, option("--first-name", _("The merchant's first name."), "NAME")
    ] = "",
    last_name: Annotated[str, option("--last-name", _("The merchant's last name."), "NAME")] = "",
    phone: Annotated[
        str, option("--phone", _("Business phone, with the country's code."), "PHONE")
    ] = "",
    street: Annotated[str, option("--street", _("Street and number."), "STREET")] = "",
    city: Annotated[str, option("--city", _("City."), "CITY")] = "",
    state: Annotated[str, option("--state", _("State or province."), "STATE")] = "",
    zip_code: Annotated[str, option("--zip", _("Postal code."), "CODE")] = "",
    country: Annotated[str, option("--country", _("Country."), "COUNTRY")] = "",
    locale: Annotated[str, option("--locale", _("Language and region, as en-US."), "TAG")] = "",
    flow: Annotated[
        Flow, option("--flow", _("Force one prompt: login or signup."), "FLOW")
    ] = Flow.AUTO,
    no_browser: NoBrowser = False,
    as_json: Json = False,
) -> None:
    """Make a merchant and a store at the ordering service, and connect it.

    Asks on a terminal for what the options leave out. The merchant finishes in a browser, within
    an hour. A merchant who exists already signs in instead.

    Example: tillbridge signup main --store-name "Bar Roma" --email anna@example.com
    """
    loaded = load_settings(context)
    store_of(loaded, store)
    form = {
        "store-name": store_name,
        "email": email,
        "first-name": first_name,
        "last-name": last_name,
        "phone": phone,
        "street": street,
        "city": city,
        "state": state,
        "zip": zip_code,
        "country": country,
        "locale": locale,
    }
    if sys.stdin.isatty():
        form = asked(form)
    check(form)
    flow_type = "" if flow is Flow.AUTO else flow.value
    request = ConnectRequest(store, form=form, flow_type=flow_type, as_json=as_json)
    connect_store(loaded, request, browser=not no_browser)


def asked(form: dict[str, str]) -> dict[str, str]:
    """Ask a person for each field that says nothing yet, until it is right."""
    from tillbridge.stores.consent import FIELDS, fault_of

    filled = dict(form)
    for field in FIELDS:
        while not filled[field.name] or fault_of(field.name, filled[field.name]):
            if filled[field.name]:
                fault = fault_of(field.name, filled[field.name])
                say.line(str(fault), level="warning")
            suffix = "" if field.required else _(" (Enter leaves it out)")
            filled[field.name] = typer.prompt(
                field.question + suffix, default="", show_default=False
            ).strip()
            if not filled[field.name] and not field.required:
                break
    return filled


def check(form: dict[str, str]) -> None:
    """Raise ConfigError, with all that is missing or wrong, before anything is sent."""
    from tillbridge.stores.consent import faults_of, missing

    if left_out := missing(form):
        raise ConfigError(
            _("A signup needs {fields}.").format(
                fields=", ".join(f"--{name}" for name in left_out)
            ),
            fix=_("Give these options, or run it on a terminal, which asks."),
        )
    if faults := faults_of(form):
        *others, last = faults
        for fault in others:
            say.trouble(str(fault))
        raise ConfigError(f"--{last.field}: {last.text}", fix=last.fix)
