"""`tillbridge adapter ...`: for whoever writes an adapter, or wonders whether one is right."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.exits import Exit
from tillbridge.cli.menu import Json
from tillbridge.cli.settings import load_settings
from tillbridge.errors import ConfigError
from tillbridge.i18n import _, ngettext

if TYPE_CHECKING:
    from tillbridge.adapters.kit import Kit
    from tillbridge.adapters.trial import Trial
    from tillbridge.adapters.verdict import KitVerdict

app = typer.Typer(help=_("Write, check and try adapters for tills."), no_args_is_help=True)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help=_("An installed adapter, module:ATTR, or the folder of its package.")
    ),
]
_SHOWN = 20
_LEVELS = {"passed": "ok", "failed": "down", "not tried": "", "exempt": "", "todo": "warning"}


@app.command("list")
def list_adapters(as_json: Json = False) -> None:
    """List the adapters that are installed, with the level that each of them reaches.

    Example: tillbridge adapter list
    """
    from tillbridge.adapters.kit import find_quality
    from tillbridge.adapters.loader import find_adapters

    found = []
    for name, adapter in find_adapters().items():
        quality = find_quality(adapter)
        found.append(
            {
                "name": name,
                "summary": adapter.summary,
                "api_version": adapter.api_version,
                "level": "none" if quality is None else quality.level,
                "capabilities": [] if quality is None else sorted(quality.capabilities),
            }
        )
    if as_json:
        say.document({"adapters": found})
        return
    say.table(
        (_("NAME"), _("LEVEL"), _("WHAT IT IS")),
        ((str(each["name"]), str(each["level"]), str(each["summary"])) for each in found),
    )


@app.command()
def check(
    name: Name,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="CHECK", help=_("Run this check alone; may be repeated.")),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help=_("Write the report there too, as JSON.")),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help=_("Write it there too, as JUnit XML.")),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check whether an adapter does what it must, on a till of its own that is made for it.

    No real till is touched. Ends with 0 when nothing is wrong, with 1 else.

    Example: tillbridge adapter check folder
    """
    from tillbridge.adapter.conformance import CHECKS
    from tillbridge.adapters.documents import DOCUMENTS_TO_CHECK
    from tillbridge.adapters.kit import find_kit
    from tillbridge.adapters.report_files import write_junit, write_report
    from tillbridge.adapters.verdict import check_kit
    from tillbridge.log import configure

    configure("auto", "warning")
    known = {each.name for each in (*CHECKS, *DOCUMENTS_TO_CHECK)}
    for each in only or ():
        if each not in known:
            raise typer.BadParameter(
                _("There is no check {name}; there are: {known}.").format(
                    name=each, known=", ".join(sorted(known))
                ),
                param_hint="--only",
            )
    kit = find_kit(name)
    if kit.adapter.name == "process":
        raise ConfigError(
            _("What the adapter process can do is what its program can do."),
            fix=_("Name the folder of the program, in which process.toml is."),
        )
    if kit.rig is None:
        raise ConfigError(
            _("The adapter {name} has no rig, so nothing can be tried on it.").format(
                name=kit.adapter.name
            ),
            fix=_("Write RIG in {package}/rig.py: docs/adapters/writing.md says how.").format(
                package=kit.package.name
            ),
        )
    verdict = check_kit(kit, only=only or (), on_begin=lambda check: _progress(check.title))
    _progress("")
    if report is not None:
        write_report(report, verdict)
    if junit is not None:
        write_junit(junit, verdict)
    if as_json:
        say.document(verdict.to_json())
    else:
        _show(kit, verdict, whole=not only)
    raise typer.Exit(Exit.DONE if verdict.passed else Exit.FAILED)


@app.command("try")
def try_adapter(
    context: typer.Context,
    name: Name,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="STORE",
            help=_("Use this store's options."),
            autocompletion=complete.stores,
        ),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option("--sample", metavar="FILE", help=_("Use the options of a TOML file.")),
    ] = None,
    currency: Annotated[
        str, typer.Option("--currency", metavar="CODE", help=_("The currency, with a sample."))
    ] = "EUR",
    once: Annotated[
        bool, typer.Option("--once", help=_("Read once, and end; else again when it changes."))
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what an adapter reads from a till: menu, availability, tables, health. Pushes nothing.

    Options come from --sample, else from the configuration's store that uses the adapter.

    Example: tillbridge adapter try folder --store main --once
    """
    from tillbridge.adapter.registration import closing
    from tillbridge.adapters.kit import find_kit
    from tillbridge.adapters.trial import opened, trial_of, trials
    from tillbridge.log import configure

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
                say.document(trial.to_json())
            else:
                _tell(trial, currency)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help=_("Small letters, digits and _."))],
    folder: Annotated[
        Path,
        typer.Option("--in", metavar="FOLDER", help=_("Where the package's folder is made.")),
    ] = Path("adapters"),
    as_json: Json = False,
) -> None:
    """Make the package of a new adapter, which works and passes its checks as it is.

    Example: tillbridge adapter new mytill
    """
    from tillbridge.adapters.scaffold import make_package

    made = make_package(name, folder)
    if as_json:
        say.document({"folder": str(made.folder), "files": [str(each) for each in made.files]})
        return
    for each in made.files:
        say.line(f"  {each}")
    say.line(_("Made {folder}. Next:").format(folder=made.folder))
    say.line(f"  tillbridge adapter check {made.folder}")
    say.line(f"  tillbridge adapter try {made.folder} --once")


@app.command("record")
def record_adapter(
    context: typer.Context,
    name: Name,
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help=_("The case folder that is made."))
    ],
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="STORE",
            help=_("Use this store's options."),
            autocompletion=complete.stores,
        ),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option("--sample", metavar="FILE", help=_("Use the options of a TOML file.")),
    ] = None,
    currency: Annotated[
        str, typer.Option("--currency", metavar="CODE", help=_("The currency, with a sample."))
    ] = "EUR",
    more: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="FILE",
            help=_("A file or folder that it reads besides; may be repeated."),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Record what an adapter sees and says, without secrets and customers' data, as a case folder.

    It reads once: files, and HTTP through a relay on this machine. It writes nothing into the
    till. Look through the folder before you hand it on.

    Example: tillbridge adapter record mytill --store main --out cases/no_prices
    """
    from tillbridge.adapters.kit import find_kit
    from tillbridge.adapters.recording.record import Source, record
    from tillbridge.log import configure

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


@app.command()
def replay(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=_("A case folder."))],
    adapter: Annotated[
        str | None,
        typer.Option("--adapter", metavar="NAME", help=_("Read it with this adapter.")),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept", help=_("What is read is right: write it into the case, as expected.")
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Read a case folder again, and show what is read differently; ends with 1 if anything is.

    With --accept what is read now becomes what is expected; look at it first.

    Without --adapter it is the one whose package the folder lies in, or the one that recorded it.

    Example: tillbridge adapter replay tests/cases/plain
    """
    from tillbridge.adapter.conformance import Case, run_case
    from tillbridge.adapter.conformance.cases import accept_reading
    from tillbridge.adapters.kit import find_kit
    from tillbridge.log import configure

    configure("auto", "warning")
    try:
        case = Case.of(folder)
        kit = find_kit(adapter or _owner(folder) or case.adapter)
        if accept:
            accept_reading(kit.adapter, case)
        difference = run_case(kit.adapter, case)
    except ValueError as failure:
        raise ConfigError(str(failure), fix=_("Correct the case.")) from failure
    if as_json:
        say.document(
            {"adapter": kit.adapter.name, "same": not difference, "difference": difference}
        )
    elif difference:
        say.line(_("It is read differently:"), level="down")
        for line in difference.splitlines():
            say.line(say.clean(line))
    else:
        say.line(_("It is read as expected."), level="ok")
    raise typer.Exit(Exit.FAILED if difference else Exit.DONE)


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
    from tillbridge.adapters.trial import options_of_sample

    if sample is None and store is None and kit.root is not None and _is_folder(name):
        sample = kit.root / "sample.toml"
    if sample is not None:
        return _Chosen(store or "try", options_of_sample(sample), currency, sample.resolve().parent)
    loaded = load_settings(context)
    found, options, currency = _of_store(loaded.settings.stores, kit.adapter.name, store)
    return _Chosen(found, options, currency, loaded.base_dir)


def _owner(folder: Path) -> str:
    """Return the folder of the package that a case lies in (in its tests/cases); "" for none."""
    for parent in list(folder.resolve().parents)[:3]:
        project = parent / "pyproject.toml"
        if (parent / "process.toml").is_file() or (
            project.is_file() and "tillbridge.adapters" in project.read_text("utf-8", "replace")
        ):
            return str(parent)
    return ""


def _show(kit: "Kit", verdict: "KitVerdict", *, whole: bool) -> None:
    for result in verdict.report.results:
        outcome = verdict.standing(result)
        text = verdict.exemption(result.check) or result.text
        say.line(
            f"{_MARKS[outcome]} {result.title}: {_indented(text)}",
            level=_LEVELS[outcome],
        )
        if outcome in {"failed", "todo"} and result.fix:
            say.line(f"    {result.fix}")
    for promise in verdict.broken:
        say.line(f"{_MARKS['failed']} quality.toml: {promise}", level="down")
    if not whole:
        return
    count = len(verdict.failures) + len(verdict.broken)
    if count:
        say.line(
            ngettext("{count} thing is wrong.", "{count} things are wrong.", count).format(
                count=count
            ),
            level="down",
        )
    elif verdict.quality is None:
        say.line(
            _("Nothing is wrong. For a level, write {path}.").format(
                path=kit.package / "quality.toml"
            )
        )
    else:
        say.line(_("Nothing is wrong. Level: {level}.").format(level=verdict.level), level="ok")


_MARKS = {"passed": "+", "failed": "x", "not tried": "-", "exempt": "-", "todo": "o"}


def _indented(text: str) -> str:
    first, *more = text.splitlines() or [""]
    return "\n".join([say.clean(first), *(f"    {say.clean(line)}" for line in more)])


def _progress(title: str) -> None:
    """Say on a terminal what is under way; a check may take seconds."""
    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[K{title}" + ("..." if title else ""), nl=False, err=True)


def _is_folder(name: str) -> bool:
    return Path(name).is_dir()


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
        say.line(
            _("{items} items, {categories} categories, {groups} add-on groups").format(
                items=len(items),
                categories=len(menu.get("categories", [])),
                groups=len(menu.get("addon_groups", [])),
            )
        )
        say.table(
            (_("ID"), _("NAME"), _("PRICE"), ""),
            (
                (
                    each["external_id"],
                    each["name"],
                    to_major(each["price"], currency),
                    "" if each.get("available", True) else _("sold out"),
                )
                for each in items[:_SHOWN]
            ),
        )
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
    for part in ("catalogue", "availability", "tables"):
        for row in said.get(part, {}).get("bad_rows", []):
            text = row["text"].rstrip()
            stop = "" if text.endswith((".", "!", "?", ":")) else "."
            say.line(
                "? " + say.clean(f"{row['place']}: {text}{stop} {row['fix']}"), level="warning"
            )
