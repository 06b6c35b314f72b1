"""The configuration: `config ...`, `setup ...`, `password`, `token ...`; and `version`."""

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tillbridge
from tillbridge import compatibility
from tillbridge.cli import say
from tillbridge.cli.commands import Yes, call, command, read_config
from tillbridge.cli.control import NotRunning, RunningBridge, find_running
from tillbridge.cli.exits import CommandFailed
from tillbridge.cli.say import Arguments, Lines
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings


def _show_checked(answer: Answer, _given: Arguments) -> Lines:
    names = answer["stores"]
    text = ngettext(
        "{file} is valid: {count} store ({names}).",
        "{file} is valid: {count} stores ({names}).",
        len(names),
    )
    file = Path(answer["file"]).name
    yield text.format(file=file, count=len(names), names=", ".join(names)), "ok"
    for note in answer["notes"]:
        yield _("Note: {note}").format(note=note), "warning"


@command("config check", _show_checked)
def check(loaded: "LoadedSettings") -> Answer:
    """Check the configuration, including the adapters' options and the secret. Starts nothing.

    Lists every mistake. Exit code: 0 the configuration is valid, 2 it is not.

    Example: tillbridge --config bridge.toml config check
    """
    from tillbridge.setup.proposal import faults_in, vault_of

    notes: list[str] = []
    faults = faults_in(loaded, vault_of(loaded), notes)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        head = _("{path} has {count} mistakes:").format(path=loaded.path, count=len(faults))
        raise ConfigError("\n".join([head, *(f"  {fault}" for fault in faults)]))
    stores = list(loaded.settings.stores)
    return {"ok": True, "file": str(loaded.path), "stores": stores, "notes": notes}


@command("config show")
def show(loaded: "LoadedSettings") -> None:
    """Show all settings with their defaults, as JSON. Secrets are masked.

    Example: tillbridge config show
    """
    import json

    from tillbridge.core.redaction import masked_value
    from tillbridge.diagnostics.known import Scrubber, secrets_here

    shown = loaded.settings.model_dump(mode="json")
    # An adapter's options may hold passwords, which only their names give away.
    text = json.dumps({**shown, "stores": masked_value(shown["stores"])})
    # What is secret by where it is: tokens within addresses, options that a program is given.
    say.document(json.loads(Scrubber(secrets_here(loaded)).known(text)))


@command("config schema")
def schema(_context: typer.Context) -> None:
    """Print the JSON Schema of bridge.toml, for editors.

    Example: tillbridge config schema > bridge.schema.json
    """
    from tillbridge.config.bridge import json_schema

    say.document(json_schema())


def version_line() -> str:
    """Return the version in one line."""
    text = _(
        "tillbridge {version} (ledger schema {ledger_schema}, adapter API {adapter_api}, service "
        "specification {specification})"
    )
    return text.format(version=tillbridge.__version__, **compatibility())


def _show_version(answer: Answer, _given: Arguments) -> Lines:
    yield version_line()
    yield _("Python {python} on {platform}").format(**answer)
    names = ", ".join(f"{name} {version}".strip() for name, version in answer["adapters"].items())
    yield _("Adapters: {names}").format(names=names)
    on_disk, ours = answer["ledger_on_disk"], answer["ledger_schema"]
    if on_disk is None:
        return
    if on_disk == ours:
        text = _("The database matches this version.")
    elif on_disk < ours:
        text = _(
            "The database has schema {on_disk}: the next start backs it up and updates it to "
            "{ours}."
        )
    else:
        text = _(
            "The database belongs to a newer tillbridge (schema {on_disk}). Install that "
            "version, or restore a backup from before it: tillbridge restore"
        )
    yield text.format(on_disk=on_disk, ours=ours)


@command("version", _show_version)
def version(context: typer.Context) -> Answer:
    """Show the version, what it works with, and whether the next start updates the database.

    Example: tillbridge version
    """
    import platform
    from importlib.metadata import entry_points

    adapters = entry_points(group="tillbridge.adapters")
    return {
        "version": tillbridge.__version__,
        **compatibility(),
        "ledger_on_disk": _schema_on_disk(context),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "adapters": dict(
            sorted((each.name, each.dist.version if each.dist else "") for each in adapters)
        ),
    }


_SCHEMA = "SELECT version_num FROM alembic_version"


def _schema_on_disk(context: typer.Context) -> str | None:
    """Return the schema of the configured ledger; None if there is none to be read."""
    from tillbridge.ledger.reading import place_of, reading

    try:
        place = place_of(*read_config(context))
        with reading(place.path, place.url) as query:
            return next((str(row[0]) for row in query(_SCHEMA)), None)
    except (BridgeError, OSError):
        return None


# -- how far the bridge is set up, and writing what the page may not write

_STATES = {"done": _("done"), "open": _("now"), "shut": _("later")}


def _show_steps(answer: Answer, _given: Arguments) -> Lines:
    from tillbridge.setup.draft import STEPS

    for number, step in enumerate(answer["steps"], 1):
        level = {"done": "ok", "open": "warning"}.get(step["state"], "")
        text = f"{number}. {STEPS[step['name']]}: {_STATES[step['state']]}"
        yield text, level
        if step["text"] and step["state"] != "shut":
            yield f"   {step['text']}"
    yield _("The page: {address}").format(address=answer["page"])


@command("setup show", _show_steps, exit_code=lambda answer: int(bool(answer["next"])))
def show_steps(context: typer.Context) -> Answer:
    """Show the steps of the set-up, which are done, and the page's address.

    Exit code: 0 everything is set up, 1 it is not.

    Example: tillbridge setup show
    """
    bridge = _running(context)
    page = f"http://{bridge.host}:{bridge.port}/setup"
    return {**bridge.perform("setup.show", {}), "page": page}


@command("setup write")
def write(context: typer.Context, *, yes: Yes = False) -> Answer:
    """Write what was set up on the page into bridge.toml, and restart the bridge.

    Shows the difference and asks. Use it where the bridge itself may not write the file.

    Example: tillbridge --config /etc/tillbridge/bridge.toml setup write
    """
    from tillbridge.config.writing import put_back, replace_file

    bridge = _running(context)
    proposed = bridge.perform("setup.text", {})
    if proposed["faults"]:
        raise ConfigError(
            "\n".join(proposed["faults"]), fix=_("Correct it on the page, under Set-up.")
        )
    if not proposed["lines"]:
        raise CommandFailed(
            _("There is nothing to save."), fix=_("Follow the steps on the page, under Set-up.")
        )
    if not yes:
        say.confirm(proposed["lines"], question=_("Write it?"), mark="")
    path = Path(proposed["file"])
    copy = replace_file(path, proposed["text"])
    try:
        answer: Answer = bridge.perform("setup.written", {"digest": proposed["digest"]})
    except BridgeError:
        if copy is not None:
            put_back(path, copy)
        raise
    return answer


def _running(context: typer.Context) -> RunningBridge:
    # The file may not be a configuration yet.
    _path, data_dir, _configured = read_config(context)
    bridge = find_running(data_dir)
    if bridge is None:
        raise NotRunning(_("The bridge is not running."), fix=_("Start it: tillbridge run"))
    return bridge


# -- how people sign in on the page, and scripts at the service


def _show_user(answer: Answer, _given: Arguments) -> Lines:
    name = answer["name"]
    table = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
    yield f"[status_page.users.{table}]"
    yield f'role = "{answer["role"]}"'
    yield f'password = "{answer["password"]}"'


@command("password", _show_user)
def password(
    _context: typer.Context,
    name: Annotated[str, Argument("NAME", _("The name to sign in with."))],
    *,
    role: Annotated[str, Argument("ROLE", _("look, staff or technician."))] = "technician",
) -> Answer:
    """Set a password for the page: prints the lines for bridge.toml, with a hash.

    Asks twice. Put the lines into bridge.toml and restart the bridge. From a pipe it reads one
    line.

    Example: tillbridge password anna --role staff
    """
    from tillbridge.setup.settings_file import ROLES, USER_NAME
    from tillbridge.web.passwords import password_hash

    if not USER_NAME.fullmatch(name):
        raise typer.BadParameter(_("Use only letters, digits and . _ @ - in a name."))
    if role not in ROLES:
        raise typer.BadParameter(
            _("There is no role {role}. Use one of: {roles}.").format(
                role=role, roles=", ".join(ROLES)
            ),
            param_hint="--role",
        )
    return {"name": name, "role": role, "password": password_hash(_asked())}


def _asked() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    import getpass

    first = getpass.getpass(_("Password: "))
    if getpass.getpass(_("Repeat: ")) != first:
        raise ConfigError(_("The passwords do not match."), fix=_("Try again."))
    return first


class Scope(StrEnum):
    """The scopes of the reporting API, for the choice on the command line."""

    REPORTS_READ = "reports.read"
    CATALOGUE_WRITE = "catalogue.write"


@command("token reporting", lambda answer, _given: [answer["access_token"]])
def reporting(
    loaded: "LoadedSettings",
    *,
    scope: Annotated[
        list[Scope] | None,
        Argument("SCOPE", _("reports.read (default), catalogue.write, or both.")),
    ] = None,
) -> Answer:
    """Print a token for the reporting API, and nothing else on stdout.

    The token belongs to the app, not to a store. The same one is printed until shortly before it
    expires. The bridge itself does not use the reporting API.

    Example: tillbridge token reporting --scope reports.read
    """
    wanted = " ".join(sorted({each.value for each in scope or [Scope.REPORTS_READ]}))
    answer: Answer = call(loaded, "reporting.token", {"scope": wanted})
    return answer
