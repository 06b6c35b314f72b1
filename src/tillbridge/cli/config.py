"""`tillbridge config ...`: check the configuration, show what holds, print its schema."""

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json
from tillbridge.cli.settings import load_settings
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _, ngettext

app = typer.Typer(help=_("Check and show the configuration."), no_args_is_help=True)


@app.command()
def check(context: typer.Context, as_json: Json = False) -> None:
    """Check the configuration, with the adapters' options and the secret; nothing is started.

    Ends with 0 when it is right and with 2 when it is not, telling everything that is wrong.

    Example: tillbridge --config bridge.toml config check
    """
    from tillbridge.setup.checking import faults_in, kept_by

    loaded = load_settings(context)
    notes: list[str] = []
    faults = faults_in(loaded, kept_by(loaded), notes)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        head = _("{path}: {count} things are wrong:").format(path=loaded.path, count=len(faults))
        raise ConfigError("\n".join([head, *(f"  {fault}" for fault in faults)]))
    names = ", ".join(loaded.settings.stores)
    count = len(loaded.settings.stores)
    if as_json:
        told = {"ok": True, "file": str(loaded.path), "stores": list(loaded.settings.stores)}
        say.document({**told, "notes": notes})
        return
    say.line(
        ngettext(
            "{file} is right: {count} store ({names}).",
            "{file} is right: {count} stores ({names}).",
            count,
        ).format(file=loaded.path.name, count=count, names=names),
        level="ok",
    )
    for note in notes:
        say.line(_("Note: {note}").format(note=note), level="warning")


@app.command()
def show(context: typer.Context) -> None:
    """Show the settings that hold, defaults included, as JSON; secrets are masked.

    Example: tillbridge config show
    """
    import json

    from tillbridge.core.redaction import masked_value
    from tillbridge.diagnostics.known import Scrubber, known_here

    loaded = load_settings(context)
    shown = loaded.settings.model_dump(mode="json")
    # An adapter's options may hold passwords, which only their names give away.
    text = json.dumps({**shown, "stores": masked_value(shown["stores"])})
    # What is secret by where it stands: tokens within addresses, options that a program is given.
    say.document(json.loads(Scrubber(known_here(loaded, (), ()).secrets).known(text)))


@app.command()
def schema() -> None:
    """Print the JSON Schema of bridge.toml, for editors that complete and check.

    Example: tillbridge config schema > bridge.schema.json
    """
    from tillbridge.config.bridge import json_schema

    say.document(json_schema())
