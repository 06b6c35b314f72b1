"""Commands of `adapter` that need a configured store: try, record, list modifiers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.commands import Json, argument, option
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.pos.kit import Kit, Trial
from typing import get_args

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import ngettext

Name = Annotated[
    str,
    argument("NAME", _("An installed adapter, module:ATTR, or the folder of its package.")),
]
Store = Annotated[
    str | None,
    option("--store", _("Use this store's options."), "STORE", autocompletion=complete.stores),
]
Sample = Annotated[
    Path | None,
    option("--sample", _("Use the options of a TOML file."), "FILE"),
]
Currency = Annotated[str, option("--currency", _("The currency, with a sample."), "CODE")]
_SHOWN = 20


def try_adapter(
    context: typer.Context,
    name: Name,
    store: Store = None,
    sample: Sample = None,
    currency: Currency = "EUR",
    once: Annotated[
        bool, option("--once", _("Read once, and end; else again when it changes."))
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what an adapter reads from a till: menu, availability, tables, health. Pushes nothing.

    Options come from --sample, else from the configuration's store that uses the adapter.

    Example: tillbridge adapter try folder --store main --once
    """
    from tillbridge.adapter.registration import closing
    from tillbridge.core.log import configure
    from tillbridge.pos.kit import find_kit, opened, trial_of, trials

    configure("auto", "info")  # what an adapter's program writes to stderr, too
    kit = find_kit(name)
    chosen = _chosen(context, kit, name, store=store, sample=sample, currency=currency)
    currency = chosen.currency
    pos = opened(
        kit.adapter,
        chosen.options,
        store=chosen.store,
        currency=currency,
        base_dir=chosen.base_dir,
    )
    with closing(pos):
        for trial in (trial_of(pos),) if once else trials(pos):
            if as_json:
                summary = None if trial.summary is None else trial.summary.to_json(chosen.currency)
                say.document({**trial.to_json(), "summary": summary})
            else:
                _tell(trial, currency)


def record_adapter(
    context: typer.Context,
    name: Name,
    out: Annotated[Path, option("--out", _("The case folder that is made."), "FOLDER")],
    store: Store = None,
    sample: Sample = None,
    currency: Currency = "EUR",
    more: Annotated[
        list[Path] | None,
        option("--with", _("A file or folder that it reads besides; may be repeated."), "FILE"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Record what an adapter sees and says, without secrets and customers' data, as a case folder.

    It reads once: files, and HTTP through a relay on this machine. It writes nothing into the
    till. Look through the folder before you hand it on.

    Example: tillbridge adapter record mytill --store main --out cases/no_prices
    """
    from tillbridge.core.log import configure
    from tillbridge.pos.kit import find_kit
    from tillbridge.pos.recording.record import Source, record

    configure("auto", "warning")
    kit = find_kit(name)
    chosen = _chosen(context, kit, name, store=store, sample=sample, currency=currency)
    source = Source(kit.adapter, chosen.options, chosen.currency, chosen.base_dir, more or ())
    recorded = record(source, out)
    if as_json:
        say.document(recorded.to_json())
        return
    for file in recorded.files:
        say.line(f"  {say.clean(file)}")
    if recorded.replies:
        say.line(_("  {count} replies over HTTP").format(count=recorded.replies))
    counts = ", ".join(f"{name} {count}" for name, count in recorded.counts.items())
    say.line(_("Read: {counts}").format(counts=counts or _("nothing")))
    for line in recorded.left_out:
        say.line(say.clean(line), level="warning")
    say.line(
        _("Made {folder}; {count} values are others now. Look through it, then:").format(
            folder=recorded.folder, count=recorded.redacted
        )
    )
    say.line(f"  tillbridge adapter replay {recorded.folder} --adapter {name}")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The options an adapter is opened with, and where they are from."""

    store: str
    options: dict[str, Any]
    currency: str
    base_dir: Path


def _chosen(
    context: typer.Context,
    kit: "Kit",
    name: str,
    *,
    store: str | None,
    sample: Path | None,
    currency: str,
) -> _Chosen:
    """Return the options of --sample, of the package's sample, or of a store."""
    from tillbridge.pos.kit import options_of_sample

    if sample is None and store is None and kit.root is not None and Path(name).is_dir():
        sample = kit.root / "sample.toml"
    if sample is not None:
        return _Chosen(store or "try", options_of_sample(sample), currency, sample.resolve().parent)
    loaded = load_settings(context)
    found, options, currency = _of_store(loaded.settings.stores, kit.adapter.name, store)
    return _Chosen(found, options, currency, loaded.base_dir)


def _of_store(stores: Any, adapter: str, wanted: str | None) -> tuple[str, dict[str, Any], str]:  # noqa: ANN401 -- the stores of the settings
    """Return the store that uses the adapter: its name, the adapter's options, its currency."""
    for name, settings in stores.items():
        for _table, used, options in settings.adapters:
            if used == adapter and wanted in {None, name}:
                return name, dict(options), settings.currency
    raise ConfigError(
        _("No store of the configuration uses the adapter {name}.").format(name=adapter),
        fix=_("Name a TOML file with its options: --sample FILE."),
    )


def _tell(trial: "Trial", currency: str) -> None:
    from tillbridge.menu.describe import summary_lines
    from tillbridge.model.money import to_major

    said = trial.to_json()
    health = said.get("health")
    if health is not None:
        words = _("The till answers.") if health["online"] else _("The till is away.")
        say.line(
            f"{words} {say.clean(health.get('detail', ''))}".rstrip(),
            level="ok" if health["online"] else "down",
        )
    menu = said.get("catalogue", {})
    if "error" in menu:
        say.line(say.clean(menu["error"]), level="down")
        say.line(say.clean(menu.get("fix", "")))
    elif "catalogue" in said:
        items = menu.get("items", [])
        columns: list[say.Column] = [
            (_("ID"), "external_id"),
            (_("NAME"), "name"),
            (_("PRICE"), lambda each: to_major(each["price"], currency)),
            ("", lambda each: "" if each.get("available", True) else _("sold out")),
        ]
        say.rows(columns, items[:_SHOWN])
        if len(items) > _SHOWN:
            say.line(_("... and {count} more (all with --json)").format(count=len(items) - _SHOWN))
    off = [
        key
        for key, state in said.get("availability", {}).get("items", {}).items()
        if not state["available"]
    ]
    if off:
        say.line(_("Sold out: {ids}").format(ids=say.clean(", ".join(off[:_SHOWN]))))
    tables = said.get("tables", {}).get("tables", [])
    if tables:
        names = ", ".join(each["name"] for each in tables[:_SHOWN])
        say.line(_("{count} tables: {names}").format(count=len(tables), names=say.clean(names)))
    for warning in menu.get("warnings", []):
        say.line(
            "! " + say.clean(f"{warning['place']}: {warning['text']} {warning['fix']}"),
            level="warning",
        )
    for part in ("catalogue", "availability", "tables"):
        for row in said.get(part, {}).get("bad_rows", []):
            text = row["text"].rstrip()
            stop = "" if text.endswith((".", "!", "?", ":")) else "."
            say.line(
                "? " + say.clean(f"{row['place']}: {text}{stop} {row['fix']}"), level="warning"
            )
    if trial.summary is not None:
        say.line(_("In all:"))
        for line in summary_lines(trial.summary, currency):
            say.line(f"  {say.clean(line)}")


_DEFAULT = "modifiers.csv"


def write_modifiers(
    context: typer.Context,
    store: Annotated[
        str,
        argument("STORE", _("The store as it is called here."), autocompletion=complete.stores),
    ],
    out: Annotated[
        Path | None,
        option(
            "--out",
            _("Write it there; else where the option modifiers says, or to modifiers.csv."),
            "FILE",
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
    from tillbridge.pos.kit import find_kit, opened

    loaded = load_settings(context)
    settings = store_of(loaded, store)
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
