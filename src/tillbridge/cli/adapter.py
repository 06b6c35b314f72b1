"""`tillbridge adapter ...`: for whoever writes an adapter, or wonders whether one is right."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.answers import answer_table
from tillbridge.cli.commands import Json, command, load_settings
from tillbridge.cli.say import Lines
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument

if TYPE_CHECKING:
    from tillbridge.adapter import Adapter
    from tillbridge.pos.kit import Kit, Trial
    from tillbridge.pos.recording import Source
    from tillbridge.pos.verdict import KitVerdict

Tried = Annotated[
    str,
    Argument(
        "NAME", _("An installed adapter, module:ATTR, the folder of its package, or a case folder.")
    ),
]
Name = Annotated[
    str, Argument("NAME", _("An installed adapter, module:ATTR, or the folder of its package."))
]
Store = Annotated[str | None, Argument("STORE", _("Use this store's options."), complete="stores")]
Sample = Annotated[Path | None, Argument("FILE", _("Use the options of a TOML file."))]
Currency = Annotated[str, Argument("CODE", _("The currency, with a sample."))]

_MOST_SHOWN = 20
# By outcome of a check: its mark, and the level of its line.
_OUTCOMES = {
    "passed": ("+", "ok"),
    "failed": ("x", "down"),
    "not tried": ("-", ""),
    "exempt": ("-", ""),
    "todo": ("o", "warning"),
}


_show_list = answer_table(
    "adapters", "", (_("NAME"), "name"), (_("LEVEL"), "level"), (_("WHAT IT IS"), "summary")
)


@command("adapter list", _show_list)
def list_adapters(_context: typer.Context) -> Answer:
    """List the installed adapters, and the level that each of them reaches.

    Example: tillbridge adapter list
    """
    from tillbridge.pos.kit import find_quality
    from tillbridge.pos.loader import find_adapters

    found = []
    for name, adapter in find_adapters().items():
        quality = find_quality(adapter)
        found.append(
            {
                "name": name,
                "summary": _(adapter.summary),
                "api_version": adapter.api_version,
                "level": "none" if quality is None else quality.level,
                "capabilities": [] if quality is None else sorted(quality.capabilities),
            }
        )
    return {"adapters": found}


# -- check


@command("adapter check")
def check(
    _context: typer.Context,
    name: Name,
    *,
    only: Annotated[
        list[str] | None, Argument("CHECK", _("Run this check alone; may be repeated."))
    ] = None,
    report: Annotated[
        Path | None, Argument("FILE", _("Write the report there too, as JSON."))
    ] = None,
    junit: Annotated[Path | None, Argument("FILE", _("Write it there too, as JUnit XML."))] = None,
    verbose: Annotated[
        bool, Argument(help=_("Show the traceback of what the adapter raised."))
    ] = False,
    as_json: Json = False,
) -> None:
    """Check an adapter against a till that is made for the test.

    Touches no real till. Exit code: 0 nothing is wrong, 1 something is.

    Example: tillbridge adapter check folder
    """
    from tillbridge.adapter.conformance.suite import CHECKS, DOCUMENTS
    from tillbridge.core.log import configure
    from tillbridge.pos.kit import find_kit
    from tillbridge.pos.verdict import check_kit, write_junit, write_report

    configure("auto", "error")  # what goes wrong is in the report
    known = {each.name for each in CHECKS} | DOCUMENTS
    for each in only or ():
        if each not in known:
            raise typer.BadParameter(
                _("There is no check {name}. Use one of: {known}.").format(
                    name=each, known=", ".join(sorted(known))
                ),
                param_hint="--only",
            )
    kit = find_kit(name)
    if kit.adapter.name == "process":
        raise ConfigError(
            _("What the adapter process can do is what its program can do."),
            fix=_("Give the program's folder, the one with process.toml."),
        )
    if kit.rig is None:
        raise ConfigError(
            _("The adapter {name} has no rig to test it with.").format(name=kit.adapter.name),
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
        say.lines(_show_verdict(kit, verdict, whole=not only, verbose=verbose))
    raise typer.Exit(not verdict.passed)


def _progress(title: str) -> None:
    """Say on a terminal what is under way; a check may take seconds."""
    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[K{title}" + ("..." if title else ""), nl=False, err=True)


def _show_verdict(
    kit: "Kit", verdict: "KitVerdict", *, whole: bool, verbose: bool = False
) -> Lines:
    shown: dict[tuple[str, str], str] = {}
    for result in verdict.report.results:
        outcome = verdict.shown_outcome(result)
        mark, level = _OUTCOMES[outcome]
        reason = verdict.exemption(result.check) if outcome == "exempt" else ""
        if outcome in {"failed", "todo"} and result.fix:
            like = shown.setdefault((result.text, result.fix), result.title)
            if like != result.title:
                text = _("the same as under “{title}”").format(title=like)
                yield f"{mark} {result.title}: {text}", level
                continue
        first, *more = (reason or result.text).splitlines() or [""]
        yield f"{mark} {result.title}: {first}", level
        yield from ((f"    {each}", level) for each in more)
        if outcome in {"failed", "todo"} and result.fix:
            yield f"    {result.fix}"
        if verbose:
            yield from (f"    | {each}" for each in result.traceback.splitlines())
    for promise in verdict.broken:
        yield f"x {promise}", "down"
    if not whole:
        return
    count = len(verdict.failures) + len(verdict.broken)
    if count:
        text = ngettext("{count} check failed.", "{count} checks failed.", count)
        yield text.format(count=count), "down"
    elif verdict.quality is None:
        path = kit.package / "quality.toml"
        yield _("All checks passed. To get a level, write {path}.").format(path=path)
    else:
        yield _("All checks passed. Level: {level}.").format(level=verdict.level), "ok"


# -- try


@command("adapter try")
def try_adapter(
    context: typer.Context,
    name: Tried,
    *,
    store: Store = None,
    sample: Sample = None,
    currency: Currency = "EUR",
    once: Annotated[
        bool, Argument(help=_("Read once. Default: read again at each change."))
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what an adapter reads from a till: menu, availability, tables, health. Sends nothing.

    Options come from --sample, else from sample.toml in the adapter's folder, else from the store
    in bridge.toml that uses the adapter. A case folder is read as it was recorded.

    Example: tillbridge adapter try folder --store main --once
    """
    from tillbridge.adapter.registration import AdapterContext, closing
    from tillbridge.core.log import configure
    from tillbridge.pos.kit import trial_of, trials
    from tillbridge.pos.loader import open_found

    configure("auto", "info")  # what an adapter's program writes to stderr, too
    with ExitStack() as until_the_end:
        if is_case := (Path(name) / "case.toml").is_file():
            called, source = "case", _source_of_case(Path(name), until_the_end)
        else:
            called, source = source_of(context, name, store, sample, currency)
        currency = source.currency
        there = AdapterContext(called, currency, called, source.base_dir)
        until_the_end.enter_context(crash_named(source.adapter))
        pos = open_found(source.adapter, source.options, there)
        until_the_end.enter_context(closing(pos))
        for trial in (trial_of(pos, is_case=is_case),) if once or is_case else trials(pos):
            if as_json:
                summary = None if trial.summary is None else trial.summary.to_json(currency)
                say.document({**trial.readings, "summary": summary})
            else:
                say.lines(_show_trial(trial, currency))


@contextmanager
def crash_named(adapter: "Adapter") -> Iterator[None]:
    """Name the line of the adapter's own code that has crashed."""
    from tillbridge.adapter.conformance.witness import Witness

    try:
        yield
    except BridgeError:
        raise
    except Exception as failure:
        place = Witness(adapter).place_of(failure)
        if place is None:
            raise
        raise BridgeError(
            f"{place} in {place.function}: {type(failure).__name__}: {failure}",
            fix=_(
                "Correct {file}, line {line}: an adapter may raise only the failures of "
                "tillbridge.adapter."
            ).format(file=place.file, line=place.line),
        ) from failure


def source_of(
    context: typer.Context, name: str, store: str | None, sample: Path | None, currency: str
) -> "tuple[str, Source]":
    """Return a store's name, and the adapter with its options.

    They are those of --sample, of the package's sample, or of a store that uses the adapter.
    """
    from tillbridge.config.values import currency_fix
    from tillbridge.pos.kit import find_kit, options_of_sample
    from tillbridge.pos.recording import Source

    if fix := currency_fix(currency):
        text = _("{code} is not the code of a currency (ISO 4217).")
        raise ConfigError(text.format(code=currency), fix=fix)
    kit = find_kit(name)
    if sample is None and store is None and kit.root is not None and Path(name).is_dir():
        sample = kit.root / "sample.toml"
    if sample is not None:
        folder = sample.resolve().parent
        return store or "try", Source(kit.adapter, options_of_sample(sample), currency, folder)
    loaded = load_settings(context)
    for called, settings in loaded.settings.stores.items():
        for _table, used, options in settings.adapters:
            if used == kit.adapter.name and store in {None, called}:
                return called, Source(
                    kit.adapter, dict(options), settings.currency, loaded.base_dir
                )
    raise ConfigError(
        _("No store of the configuration uses the adapter {name}.").format(name=kit.adapter.name),
        fix=_("Give a TOML file with its options: --sample FILE."),
    )


def _source_of_case(folder: Path, until_the_end: ExitStack) -> "Source":
    """Return the adapter of a case folder, with the case's files and answers."""
    from tillbridge.adapter.conformance.cases import Case, copied_case
    from tillbridge.pos.kit import find_kit
    from tillbridge.pos.recording import Source

    try:
        case = Case.of(folder)
        kit = find_kit(package_of(folder) or case.adapter)
        home, options, _strange = until_the_end.enter_context(copied_case(case))
    except ValueError as failure:
        raise ConfigError(str(failure), fix=_("Correct the case.")) from failure
    return Source(kit.adapter, options, case.currency, home)


def _show_trial(trial: "Trial", currency: str) -> Lines:
    from tillbridge.menu.describe import summary_lines

    readings = trial.readings
    health = readings.get("health")
    if health is not None:
        text = _("The till answers.") if health["online"] else _("The till does not answer.")
        text = f"{text} {health['detail']}".rstrip()
        yield text, "ok" if health["online"] else "down"
    menu = readings.get("catalogue")
    if menu is not None and "error" in menu:
        yield menu["error"], "down"
        yield menu["fix"]
    elif menu is not None:
        yield from _show_menu(menu, currency)
    states = readings.get("availability", {}).get("items", {})
    off = [item for item, state in states.items() if not state["available"]]
    if off:
        yield _("Sold out: {ids}").format(ids=", ".join(off[:_MOST_SHOWN]))
    tables = readings.get("tables", {}).get("tables", [])
    if tables:
        names = ", ".join(each["name"] for each in tables[:_MOST_SHOWN])
        text = ngettext("{count} table: {names}", "{count} tables: {names}", len(tables))
        yield text.format(count=len(tables), names=names)
    for each in (menu or {}).get("warnings", ()):
        yield f"! {each['place']}: {each['text']} {each['fix']}", "warning"
    for part in ("catalogue", "availability", "tables"):
        for row in readings.get(part, {}).get("bad_rows", ()):
            text = f"{row['text']}".rstrip()
            stop = "" if text.endswith((".", "!", "?", ":")) else "."
            yield f"? {row['place']}: {text}{stop} {row['fix']}", "warning"
    if trial.summary is not None:
        yield _("Total:")
        yield from (f"  {line}" for line in summary_lines(trial.summary, currency))


def _show_menu(menu: Mapping[str, Any], currency: str) -> Lines:
    """Show items with their sizes, and what can be added to them."""
    from tillbridge.model.money import to_major

    categories = {each["external_id"]: each["name"] for each in menu.get("categories", ())}
    add_ons = {each["external_id"]: each for each in menu.get("add_ons", ())}
    groups = {each["external_id"]: each for each in menu.get("addon_groups", ())}

    def names(each: Mapping[str, Any], field: str, of: Mapping[str, str]) -> str:
        return ", ".join(of.get(key, key) for key in each.get(field, ()))

    lines: list[Mapping[str, Any]] = []
    items = menu.get("items", ())
    for item in items[:_MOST_SHOWN]:
        sizes = [{**each, "name": f"  {each['variant_name']}"} for each in item.get("variants", ())]
        lines += [item, *sizes]
    group_names = {key: each["name"] for key, each in groups.items()}
    columns: list[say.Column] = [
        (_("ID"), "external_id"),
        (_("NAME"), "name"),
        (_("PRICE"), lambda each: to_major(each["price"], currency)),
        (_("CATEGORY"), lambda each: names(each, "categories", categories)),
        (_("ADD-ONS"), lambda each: names(each, "addon_groups", group_names)),
        ("", lambda each: "" if each.get("available", True) else _("sold out")),
    ]
    yield from say.rows(columns, lines)
    if (more := len(items) - _MOST_SHOWN) > 0:
        yield _("... and {count} more (to see all: --json)").format(count=more)
    for group in list(groups.values())[:_MOST_SHOWN]:
        offered = (add_ons[key] for key in group.get("add_ons", ()) if key in add_ons)
        yield _("Add-ons {id} {name}, {least} to {most}: {add_ons}").format(
            id=group["external_id"],
            name=group["name"],
            least=group.get("min_select", 0),
            most=group.get("max_select") or _("all"),
            add_ons=", ".join(
                f"{each['name']} {to_major(each['price'], currency)}" for each in offered
            ),
        )


def package_of(folder: Path) -> str:
    """Return the folder of the package that a case lies in (in its tests/cases); "" for none."""
    for parent in list(folder.resolve().parents)[:3]:
        project = parent / "pyproject.toml"
        if (parent / "process.toml").is_file() or (
            project.is_file() and "tillbridge.adapters" in project.read_text("utf-8", "replace")
        ):
            return str(parent)
    return ""
