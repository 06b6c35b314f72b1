"""`tillbridge adapter modifiers`: the file of what modifiers offer, with their names in it."""

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.menu import Json
from tillbridge.cli.settings import load_settings
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _, ngettext

_DEFAULT = "modifiers.csv"


def write_modifiers(
    context: typer.Context,
    store: Annotated[
        str,
        typer.Argument(
            metavar="STORE",
            help=_("The store as it is called here."),
            autocompletion=complete.stores,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help=_("Write it there; else where the option modifiers says, or to modifiers.csv."),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the file of what modifiers offer, with a row for each modifier that has no options.

    What stands in the file stays. Fill in option and price, and add a row for each further option;
    the option - leaves a modifier out.

    Example: tillbridge adapter modifiers main
    """
    from tillbridge.adapter.modifier_file import add_rows

    options, base_dir, missing = _missing_of(context, store)
    path = out if out is not None else base_dir / options.get("modifiers", _DEFAULT)
    if missing:
        _write(path, add_rows(path, missing))
    if as_json:
        say.document({"file": str(path), "modifiers": list(missing)})
        return
    if not missing:
        say.line(_("Every modifier of the export has its options. Nothing was written."))
        return
    say.line(
        ngettext(
            "Wrote {file}: {count} modifier without options ({names}).",
            "Wrote {file}: {count} modifiers without options ({names}).",
            len(missing),
        ).format(file=path, count=len(missing), names=say.clean(", ".join(missing)))
    )
    say.line(_("Fill in option and price; add a row for each further option of a modifier."))
    if "modifiers" not in options:
        say.line(
            _('Then set in [stores.{store}.pos]: modifiers = "{file}"').format(
                store=store, file=path.name
            )
        )


def _write(path: Path, text: str) -> None:
    """Write the file; one that is there keeps its owner, and a copy. Raises ConfigError."""
    from tillbridge.config.writing import replace_file

    if path.exists():
        replace_file(path, text)
        return
    try:
        path.write_text(text, "utf-8", newline="")
    except OSError as failure:
        raise ConfigError(
            _("{path} cannot be written: {why}.").format(path=path, why=failure.strerror),
            fix=_("Name another file with --out."),
        ) from failure


def _missing_of(context: typer.Context, store: str) -> tuple[dict[str, Any], Path, tuple[str, ...]]:
    """Return the adapter's options, the folder they count from, and the modifiers without options.

    Raises ConfigError and BridgeError.
    """
    from tillbridge.adapter import ExportUnreadable, PosFailure, ReadsCatalogue
    from tillbridge.adapter.registration import closing
    from tillbridge.pos.kit import find_kit
    from tillbridge.pos.trial import opened

    loaded = load_settings(context)
    settings = loaded.settings.stores.get(store)
    if settings is None:
        raise ConfigError(
            _("There is no store {store} in the configuration.").format(store=store),
            fix=_("It has: {names}.").format(names=", ".join(loaded.settings.stores)),
        )
    used, options = next((name, dict(said)) for table, name, said in settings.adapters)
    adapter = find_kit(used).adapter
    field = adapter.options.model_fields.get("modifiers")
    if field is None or Path not in get_args(field.annotation):
        raise ConfigError(
            _("The adapter {adapter} reads no file of modifiers.").format(adapter=used),
            fix=_("Its export says itself what can be chosen, or has no modifiers."),
        )
    there = {
        name: value
        for name, value in options.items()
        # A file that the configuration names may still have to be written.
        if name != "modifiers" or (loaded.base_dir / value).exists()
    }
    pos = opened(adapter, there, store=store, currency=settings.currency, base_dir=loaded.base_dir)
    with closing(pos):
        if not isinstance(pos, ReadsCatalogue):
            return options, loaded.base_dir, ()
        try:
            return options, loaded.base_dir, pos.read_catalogue().facts.not_offered
        except ExportUnreadable as failure:
            raise BridgeError(failure.text, fix=failure.fix) from failure
        except PosFailure as failure:
            raise BridgeError(failure.message, fix=_("Check that the till is on.")) from failure
