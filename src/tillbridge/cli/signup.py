"""`tillbridge signup`: a merchant and a store at the ordering service, from nothing."""

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, Store
from tillbridge.cli.connect import NoBrowser, Wish, connect_store
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _


class Flow(StrEnum):
    """Which prompt the merchant gets, for the choice on the command line."""

    AUTO = "auto"
    LOGIN = "login"
    SIGNUP = "signup"


def _option(name: str, metavar: str, text: str) -> Any:  # noqa: ANN401 -- typer has no name for it
    return typer.Option(f"--{name}", metavar=metavar, help=text)


def signup(  # noqa: PLR0913, PLR0917 -- one option for each field of the specification
    context: typer.Context,
    store: Store,
    store_name: Annotated[str, _option("store-name", "NAME", _("What guests call it."))] = "",
    email: Annotated[str, _option("email", "EMAIL", _("The merchant's e-mail."))] = "",
    first_name: Annotated[str, _option("first-name", "NAME", _("The merchant's first name."))] = "",
    last_name: Annotated[str, _option("last-name", "NAME", _("The merchant's last name."))] = "",
    phone: Annotated[
        str, _option("phone", "PHONE", _("Business phone, with the country's code."))
    ] = "",
    street: Annotated[str, _option("street", "STREET", _("Street and number."))] = "",
    city: Annotated[str, _option("city", "CITY", _("City."))] = "",
    state: Annotated[str, _option("state", "STATE", _("State or province."))] = "",
    zip_code: Annotated[str, _option("zip", "CODE", _("Postal code."))] = "",
    country: Annotated[str, _option("country", "COUNTRY", _("Country."))] = "",
    locale: Annotated[str, _option("locale", "TAG", _("Language and region, as en-US."))] = "",
    flow: Annotated[
        Flow, typer.Option("--flow", metavar="FLOW", help=_("Force one prompt: login or signup."))
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
    wish = Wish(store, form=form, flow_type=flow_type, as_json=as_json)
    connect_store(loaded, wish, browser=not no_browser)


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
