"""`tillbridge config ...`: check the configuration, show what holds, print its schema."""

from typing import TYPE_CHECKING, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.menu import Json
from tillbridge.cli.settings import load_settings
from tillbridge.errors import ConfigError
from tillbridge.i18n import _, ngettext

if TYPE_CHECKING:
    from tillbridge.configfile import LoadedSettings

app = typer.Typer(help=_("Check and show the configuration."), no_args_is_help=True)


@app.command()
def check(context: typer.Context, as_json: Json = False) -> None:
    """Check the configuration, with the adapters' options and the secret; nothing is started.

    Ends with 0 when it is right and with 2 when it is not, telling everything that is wrong.

    Example: tillbridge --config bridge.toml config check
    """
    loaded = load_settings(context)
    notes: list[str] = []
    faults = [*_secret_faults(loaded), *_adapter_faults(loaded), *_file_faults(loaded, notes)]
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
    from tillbridge.redaction import masked_value

    told = load_settings(context).settings.model_dump(mode="json")
    # An adapter's options may hold passwords, which only their names give away.
    say.document({**told, "stores": masked_value(told["stores"])})


@app.command()
def schema() -> None:
    """Print the JSON Schema of bridge.toml, for editors that complete and check.

    Example: tillbridge config schema > bridge.schema.json
    """
    from tillbridge.configfile.schema import json_schema

    say.document(json_schema())


def _secret_faults(loaded: "LoadedSettings") -> list[ConfigError]:
    from tillbridge.configfile.secrets import resolve_secret

    faults = []
    for path, source in loaded.settings.secrets():
        try:
            resolve_secret(source, key=".".join(map(str, path)), base_dir=loaded.base_dir)
        except ConfigError as fault:
            faults.append(_placed(loaded, fault, loaded.line_of(*path)))
    return faults


def _file_faults(loaded: "LoadedSettings", notes: list[str]) -> list[ConfigError]:
    """Read the stores' own files; `notes` is given what is right and yet worth a look."""
    from datetime import UTC, datetime

    from tillbridge.configfile.store_files import StoreFiles, read_store_files

    faults = []
    for store in loaded.settings.stores.values():
        files = StoreFiles.of(store, loaded.base_dir)
        try:
            notes += read_store_files(files, today=datetime.now(UTC).date()).notes
        except ConfigError as fault:
            faults.append(fault)
    return faults


def _adapter_faults(loaded: "LoadedSettings") -> list[ConfigError]:
    """Let each adapter check its own options, by opening it; opening writes nothing."""
    from tillbridge.adapter import AdapterContext
    from tillbridge.adapter.registration import closing
    from tillbridge.adapters.loader import open_adapter

    faults = []
    for name, store in loaded.settings.stores.items():
        context = AdapterContext(name, store.currency, store.location_id, loaded.base_dir)
        chosen: list[tuple[str, str, dict[str, Any]]] = [("pos", *store.pos_adapter)]
        if store.order_adapter:
            chosen.append(("orders", *store.order_adapter))
        for table, adapter, options in chosen:
            try:
                with closing(open_adapter(adapter, options, context, table=table)):
                    pass
            except ConfigError as fault:
                where = f"stores.{name}.{table}"
                key = fault.text.partition(f"{where}.")[2].partition(" ")[0].strip(":.")
                line = loaded.line_of("stores", name, table, *key.split("."))
                named = "" if where in fault.text else f"[{where}] "
                faults.append(_placed(loaded, fault, line, named))
    return faults


def _placed(
    loaded: "LoadedSettings", fault: ConfigError, line: int, table: str = ""
) -> ConfigError:
    place = _("{file}, line {line}: ").format(file=loaded.path, line=line) if line else ""
    return ConfigError(f"{place}{table}{fault.text}", fix=fault.fix)
