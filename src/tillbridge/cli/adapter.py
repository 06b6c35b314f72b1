"""`tillbridge adapter ...`: for whoever writes an adapter, or wonders whether one is right."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tillbridge.cli import say
from tillbridge.cli.adapter_till import Name, record_adapter, try_adapter, write_modifiers
from tillbridge.cli.commands import Json, argument, option
from tillbridge.cli.exits import Exit
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _, ngettext

if TYPE_CHECKING:
    from tillbridge.pos.kit import Kit
    from tillbridge.pos.verdict import KitVerdict

app = typer.Typer(help=_("Write, check and try adapters for tills."), no_args_is_help=True)

_LEVELS = {"passed": "ok", "failed": "down", "not tried": "", "exempt": "", "todo": "warning"}


@app.command("list")
def list_adapters(as_json: Json = False) -> None:
    """List the adapters that are installed, with the level that each of them reaches.

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
        option("--only", _("Run this check alone; may be repeated."), "CHECK"),
    ] = None,
    report: Annotated[
        Path | None,
        option("--report", _("Write the report there too, as JSON."), "FILE"),
    ] = None,
    junit: Annotated[
        Path | None,
        option("--junit", _("Write it there too, as JUnit XML."), "FILE"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check whether an adapter does what it must, on a till of its own that is made for it.

    No real till is touched. Ends with 0 when nothing is wrong, with 1 else.

    Example: tillbridge adapter check folder
    """
    from tillbridge.adapter.conformance.suite import CHECKS, DOCUMENTS
    from tillbridge.core.log import configure
    from tillbridge.pos.kit import find_kit
    from tillbridge.pos.verdict import check_kit, write_junit, write_report

    configure("auto", "warning")
    known = {each.name for each in CHECKS} | DOCUMENTS
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


app.command("try")(try_adapter)
app.command("modifiers")(write_modifiers)


@app.command()
def new(
    name: Annotated[str, argument("NAME", _("Small letters, digits and _."))],
    folder: Annotated[
        Path,
        option("--in", _("Where the package's folder is made."), "FOLDER"),
    ] = Path("adapters"),
    as_json: Json = False,
) -> None:
    """Make the package of a new adapter, which works and passes its checks as it is.

    Example: tillbridge adapter new mytill
    """
    from tillbridge.pos.scaffold import make_package

    made = make_package(name, folder)
    if as_json:
        say.document({"folder": str(made.folder), "files": [str(each) for each in made.files]})
        return
    for each in made.files:
        say.line(f"  {each}")
    say.line(_("Made {folder}. Next:").format(folder=made.folder))
    say.line(f"  tillbridge adapter check {made.folder}")
    say.line(f"  tillbridge adapter try {made.folder} --once")


app.command("record")(record_adapter)


@app.command()
def replay(
    folder: Annotated[Path, argument("FOLDER", _("A case folder."))],
    adapter: Annotated[
        str | None,
        option("--adapter", _("Read it with this adapter."), "NAME"),
    ] = None,
    accept: Annotated[
        bool,
        option("--accept", _("What is read is right: write it into the case, as expected.")),
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
    from tillbridge.core.log import configure
    from tillbridge.pos.kit import find_kit

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
        say.line(f"{_MARKS['failed']} {promise}", level="down")
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
