"""`tillbridge connect` and `signup`: a merchant consents in a browser; the store is integrated."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, asked_or_alone, call, command
from tillbridge.cli.control import NotRunning, RunningBridge, os_user
from tillbridge.cli.exits import CommandFailed, exit_code_of_name
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Argument
from tillbridge.operations.arguments import StoreName

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings

_POLL_S = 0.5
_CONSENT_S = 600.0
_SIGNUP_S = 3600.0

# Performs an operation, in the running bridge or here, and returns its answer.
Perform = Callable[[str, Mapping[str, object]], Answer]
NoBrowser = Annotated[bool, Argument(help=_("Print the address, but do not open a browser."))]


@command("connect")
def connect(
    loaded: "LoadedSettings",
    store: StoreName,
    *,
    no_browser: NoBrowser = False,
    store_id: Annotated[
        str, Argument("ID", _("The store's id, if the account has several stores."))
    ] = "",
    email: Annotated[str, Argument("EMAIL", _("The e-mail address to sign in with."))] = "",
    reintegrate: Annotated[
        bool,
        Argument(help=_("Reconnect the store, with a new webhook secret.")),
    ] = False,
    as_json: Json = False,
) -> None:
    """Connect a store: sign in at the ordering service and allow this bridge.

    Prints an address to open in a browser, and waits up to ten minutes. If the account has
    several stores, you choose one. Safe to repeat, also while the bridge runs: do it once a week,
    since a sign-in lasts 7 days.

    Example: tillbridge connect main
    """
    given = {"store": store, "reintegrate": reintegrate, "store_id": store_id, "email": email}
    _connect(loaded, "connect", given, wait_s=_CONSENT_S, browser=not no_browser, as_json=as_json)


@command("signup")
def signup(  # noqa: PLR0913 -- one option for each field of the specification
    loaded: "LoadedSettings",
    store: StoreName,
    *,
    store_name: Annotated[str, Argument("NAME", _("The store's name for guests."))] = "",
    email: Annotated[str, Argument("EMAIL", _("The owner's e-mail address."))] = "",
    first_name: Annotated[str, Argument("NAME", _("The owner's first name."))] = "",
    last_name: Annotated[str, Argument("NAME", _("The owner's last name."))] = "",
    phone: Annotated[str, Argument("PHONE", _("Business phone, with country code."))] = "",
    street: Annotated[str, Argument("STREET", _("Street and number."))] = "",
    city: Annotated[str, Argument("CITY", _("City."))] = "",
    state: Annotated[str, Argument("STATE", _("State or province."))] = "",
    zip_code: Annotated[str, Argument("CODE", _("Postal code."), "--zip")] = "",
    country: Annotated[str, Argument("COUNTRY", _("Country."))] = "",
    locale: Annotated[str, Argument("TAG", _("Language and region, for example en-US."))] = "",
    flow: Annotated[
        Literal["auto", "login", "signup"],
        Argument("FLOW", _("The page to show first: login or signup.")),
    ] = "auto",
    no_browser: NoBrowser = False,
    as_json: Json = False,
) -> None:
    """Create an account and a store at the ordering service, and connect it.

    Asks for what the options leave out. Finish it in a browser within an hour. With an e-mail
    address that has an account already, you sign in instead.

    Example: tillbridge signup main --store-name "Bar Roma" --email anna@example.com
    """
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
        _ask_for_missing(form)
    _check(form)
    given = {"store": store, "form": form, "flow_type": "" if flow == "auto" else flow}
    _connect(loaded, "signup", given, wait_s=_SIGNUP_S, browser=not no_browser, as_json=as_json)


def _connect(
    loaded: "LoadedSettings",
    name: str,
    given: Mapping[str, Any],
    *,
    wait_s: float,
    browser: bool,
    as_json: bool,
) -> None:
    """Carry a connection through, by the running bridge or here, and say what came of it."""
    store = given["store"]
    report = say.aside if as_json else say.line

    def carry_through(perform: Perform, wait: Callable[[float], None]) -> Answer:
        begun = perform(name, given)
        if begun.get("as_login") is True:
            report(_("This e-mail address has an account already: sign in instead."))
        _invite(begun["url"], wait_s, report, browser=browser)
        answer = _result(perform, wait, begun["state"], wait_s)
        if "choose" not in answer or not sys.stdin.isatty():
            return answer
        store_id = _choose(answer["choose"], report, as_json=as_json)
        choice = {"store": store, "store_id": store_id}
        again = given.get("reintegrate", False)
        return {**perform("connect.choose", {**choice, "reintegrate": again}), "chosen": store_id}

    def ask(running: RunningBridge) -> tuple[Answer, bool]:
        return carry_through(running.perform, time.sleep), True

    def alone() -> tuple[Answer, bool]:
        from tillbridge import daemon

        with daemon.connecting(loaded, store, user=os_user()) as session:
            return carry_through(session.perform, session.wait), False

    answer, is_running = asked_or_alone(loaded.data_dir, ask, alone)
    if not answer.get("ok"):
        code = exit_code_of_name(str(answer.get("kind", "")))
        text, fix = str(answer.get("text", "")), str(answer.get("fix", ""))
        raise CommandFailed(text, fix=fix, exit_code=code)
    if as_json:
        say.document(answer)
        return
    say.lines(say.sentence(answer, {}))
    asks = answer.get("rotate") and sys.stdin.isatty()
    if asks and typer.confirm(str(_("Get a new webhook secret now?"))):
        answered = call(loaded, "integration.rotate_secret", {"store": store})
        say.lines(say.sentence(answered, {}))
    if given.get("store_id") or "chosen" in answer:
        text = _('To make this permanent, add to [stores.{store}]: store_id = "{id}"')
        say.line(text.format(store=store, id=answer["store_id"]))
    if answer.get("webhook_url"):
        say.line(_("Orders go to: {url}").format(url=answer["webhook_url"]))
    if not is_running:
        say.line(_("Next: tillbridge run, or start the service."))


def _invite(url: str, wait_s: float, report: Callable[[str], None], *, browser: bool) -> None:
    """Show the merchant's address, on a line of its own, and open it in a browser if wanted."""
    report(_("Open: {url}").format(url=url))
    if browser:
        import webbrowser

        try:
            webbrowser.open(url)
        except webbrowser.Error:
            report(_("No browser could be opened. Open the address yourself."))
    text = _("Waiting for you to sign in, for up to {minutes} minutes (Ctrl-C stops).")
    report(text.format(minutes=round(wait_s / 60)))


def _result(perform: Perform, wait: Callable[[float], None], state: str, wait_s: float) -> Answer:
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        try:
            answer = perform("connect.result", {"state": state})
        except NotRunning:
            raise CommandFailed(
                _("The bridge stopped while it waited for the sign-in."),
                fix=_("Start it and try again."),
            ) from None
        if answer.get("done"):
            return answer
        wait(_POLL_S)
    raise CommandFailed(
        _("Nobody signed in within ten minutes."),
        fix=_("Run it again, and sign in with the restaurant's account."),
    )


def _choose(stores: Sequence[Answer], report: Callable[[str], None], *, as_json: bool) -> str:
    """Let a person choose one of the merchant's stores; return its id."""
    report(_("This account has several stores. Which one is this?"))
    for number, store in enumerate(stores, 1):
        name = say.clean(store["name"] or "?")
        states = ", ".join(
            say.clean(store[key]) for key in ("status", "integration_status") if store[key]
        )
        report(f"  {number}. {name}  {say.clean(store['store_id'])}  ({states})")
    while True:
        answer = typer.prompt(str(_("Number")), err=as_json).strip()
        if answer.isdecimal() and 1 <= int(answer) <= len(stores):
            return str(stores[int(answer) - 1]["store_id"])
        report(_("Type a number from 1 to {last}.").format(last=len(stores)))


def _ask_for_missing(form: dict[str, str]) -> None:
    """Ask a person for each field that says nothing yet, until it is right."""
    from tillbridge.stores.consent import FIELDS, fault_of

    for field in FIELDS:
        while (fault := fault_of(field.name, form[field.name])) or not form[field.name]:
            if fault is not None:
                say.line(str(fault), level="warning")
            question = field.question + ("" if field.required else _(" (Enter to skip)"))
            form[field.name] = typer.prompt(str(question), default="", show_default=False).strip()
            if not form[field.name] and not field.required:
                break


def _check(form: Mapping[str, str]) -> None:
    """Raise ConfigError, with all that is missing or wrong, before anything is sent."""
    from tillbridge.stores.consent import faults_of, refuse_missing

    refuse_missing(form)
    if faults := faults_of(form):
        *others, last = faults
        for each in others:
            say.trouble(str(each))
        raise ConfigError(f"--{last.field}: {last.text}", fix=last.fix)
