"""`tillbridge adapter modifiers, new, record, replay`: what writes files for an adapter."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from tillbridge.cli import say
from tillbridge.cli.adapter import (
    Currency,
    Name,
    Sample,
    Store,
    crash_named,
    package_of,
    source_of,
)
from tillbridge.cli.commands import Json, command
from tillbridge.cli.say import Arguments, Lines
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument

if TYPE_CHECKING:
    from tillbridge.adapter.conformance.witness import Witness
    from tillbridge.config.loading import LoadedSettings


# -- modifiers


@command("adapter modifiers")
def write_modifiers(
    loaded: "LoadedSettings",
    store: Annotated[
        str, Argument("STORE", _("The store's name in bridge.toml."), "", "stores", "store")
    ],
    *,
    out: Annotated[
        Path | None,
        Argument(
            "FILE",
            _("The file to write. Default: the one in the option modifiers, or modifiers.csv."),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a file with a row for each modifier whose options the till does not export.

    Existing rows stay. Fill in option and price, and add a row for each further option. The
    option - leaves a modifier out.

    Example: tillbridge adapter modifiers main
    """
    from tillbridge.adapter.modifier_file import add_rows

    options, missing = _without_options(loaded, store)
    path = out or loaded.base_dir / options.get("modifiers", "modifiers.csv")
    if missing:
        _write(path, add_rows(path, missing))
    if as_json:
        say.document({"file": str(path), "modifiers": list(missing)})
        return
    if not missing:
        say.line(_("Every modifier of the export has its options. Nothing was written."))
        return
    text = ngettext(
        "Wrote {file}: {count} modifier without options ({names}).",
        "Wrote {file}: {count} modifiers without options ({names}).",
        len(missing),
    )
    say.line(text.format(file=path, count=len(missing), names=say.clean(", ".join(missing))))
    say.line(_("Fill in option and price; add a row for each further option of a modifier."))
    if "modifiers" not in options:
        text = _('Then set in [stores.{store}.pos]: modifiers = "{file}"')
        say.line(text.format(store=store, file=path.name))


def _without_options(
    loaded: "LoadedSettings", store: str
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the adapter's options, and the modifiers of the export without options."""
    from tillbridge.adapter import ExportUnreadable, PosFailure, ReadsCatalogue
    from tillbridge.adapter.registration import AdapterContext, closing
    from tillbridge.pos.kit import find_kit
    from tillbridge.pos.loader import open_found

    settings, base_dir = loaded.settings.stores[store], loaded.base_dir
    used, options = settings.pos_adapter
    adapter = find_kit(used).adapter
    field = adapter.options.model_fields.get("modifiers")
    if field is None or Path not in get_args(field.annotation):
        raise ConfigError(
            _("The adapter {adapter} reads no file of modifiers.").format(adapter=used),
            fix=_("Its export already has the options, or has no modifiers."),
        )
    there = {
        name: value
        for name, value in options.items()
        # A file that the configuration names may still have to be written.
        if name != "modifiers" or (base_dir / value).exists()
    }
    pos = open_found(adapter, there, AdapterContext(store, settings.currency, store, base_dir))
    with closing(pos):
        if not isinstance(pos, ReadsCatalogue):
            return options, ()
        try:
            return options, pos.read_catalogue().facts.not_offered
        except ExportUnreadable as failure:
            raise BridgeError(failure.text, fix=failure.fix) from failure
        except PosFailure as failure:
            raise BridgeError(failure.message, fix=_("Check that the till is on.")) from failure


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
            fix=_("Choose another file with --out."),
        ) from failure


# -- new, record, replay


def _show_made(answer: Answer, _given: Arguments) -> Lines:
    folder = answer["folder"]
    yield from (f"  {each}" for each in answer["files"])
    yield _("Created {folder}. Next:").format(folder=folder)
    yield f"  tillbridge adapter check {folder}"
    yield f"  tillbridge adapter try {Path(folder) / 'tests/cases/plain'} --once"


@command("adapter new", _show_made)
def new(
    _context: typer.Context,
    name: Annotated[str, Argument("NAME", _("The name: lower-case letters, digits and _."))],
    *,
    folder: Annotated[
        Path, Argument("FOLDER", _("The folder in which to create the package."), "--in")
    ] = Path("adapters"),
    kind: Annotated[
        str,
        Argument("KIND", _("What the till has: files, http (REST), sql, or process (a program).")),
    ] = "files",
) -> Answer:
    """Create the package of a new adapter, which works and passes its checks right away.

    Example: tillbridge adapter new mytill --kind http
    """
    from tillbridge.pos.scaffold import make_package

    made = make_package(name, folder, kind)
    return {"folder": str(made.folder), "files": [str(each) for each in made.files]}


def _show_recorded(answer: Answer, given: Arguments) -> Lines:
    yield from (f"  {file}" for file in answer["files"])
    if answer["replies"]:
        text = ngettext(
            "  {count} reply over HTTP", "  {count} replies over HTTP", answer["replies"]
        )
        yield text.format(count=answer["replies"])
    counts = ", ".join(f"{kind} {count}" for kind, count in answer["counts"].items())
    yield _("Read: {counts}").format(counts=counts or _("nothing"))
    yield from ((each, "warning") for each in answer["left_out"])
    text = ngettext(
        "Created {folder} and replaced {count} value. Look through it, then:",
        "Created {folder} and replaced {count} values. Look through it, then:",
        answer["redacted"],
    )
    yield text.format(folder=answer["folder"], count=answer["redacted"])
    yield f"  tillbridge adapter replay {answer['folder']} --adapter {given['name']}"


@command("adapter record", _show_recorded)
def record_adapter(
    context: typer.Context,
    name: Name,
    *,
    out: Annotated[Path, Argument("FOLDER", _("The case folder to create."))],
    store: Store = None,
    sample: Sample = None,
    currency: Currency = "EUR",
    more: Annotated[
        list[Path] | None,
        Argument("FILE", _("Another file or folder that it reads; may be repeated."), "--with"),
    ] = None,
) -> Answer:
    """Record what an adapter reads as a case folder, without secrets and customer data.

    Reads once: files, and HTTP through a relay on this machine. Writes nothing to the till. Look
    through the folder before you share it.

    Example: tillbridge adapter record mytill --store main --out cases/no_prices
    """
    from dataclasses import replace

    from tillbridge.core.log import configure
    from tillbridge.pos.recording import record

    configure("auto", "warning")
    _called, source = source_of(context, name, store, sample, currency)
    with crash_named(source.adapter):
        return record(replace(source, more=more or ()), out).to_json()


def _show_difference(answer: Answer, _given: Arguments) -> Lines:
    if answer["same"]:
        yield _("The result is as expected."), "ok"
        return
    yield _("The result has changed:"), "down"
    yield from answer["difference"].splitlines()
    if answer["place"]:
        yield _("Where: {place}").format(place=answer["place"])
    if answer["program_wrote"]:
        yield _("The program wrote last:")
        yield from answer["program_wrote"].splitlines()


def _refuse_crash(witness: "Witness", reading: Mapping[str, Any]) -> None:
    """Refuse to expect that a program crashes: other adapters raise, a program tells on stderr."""
    place = witness.place_in_stderr()
    if place and any("error" in part for part in reading.values()):
        file, _colon, line = place.partition(":")
        raise BridgeError(
            f"{place}: {witness.stderr_tail()}",
            fix=_(
                "Correct {file}, line {line}: an adapter may raise only the failures of "
                "tillbridge.adapter."
            ).format(file=file, line=line),
        )


@command("adapter replay", _show_difference, exit_code=lambda answer: int(not answer["same"]))
def replay(
    _context: typer.Context,
    folder: Annotated[Path, Argument("FOLDER", _("A case folder."))],
    *,
    adapter: Annotated[str | None, Argument("NAME", _("Read it with this adapter."))] = None,
    accept: Annotated[
        bool,
        Argument(help=_("Save the result as the expected one.")),
    ] = False,
) -> Answer:
    """Read a case folder again and show what has changed. Exit code 1: something has.

    With --accept, today's result becomes the expected one. Review it first.

    Without --adapter: the adapter whose package holds the folder, or the one that recorded it.

    Example: tillbridge adapter replay tests/cases/plain
    """
    from tillbridge.adapter.conformance import Case
    from tillbridge.adapter.conformance.cases import (
        CaseError,
        accept_reading,
        compare_case,
        read_case,
    )
    from tillbridge.adapter.conformance.suite import place_of, violation_of
    from tillbridge.adapter.conformance.witness import Witness
    from tillbridge.core.log import configure
    from tillbridge.pos.kit import find_kit

    configure("auto", "warning")
    try:
        case = Case.of(folder)
        kit = find_kit(adapter or package_of(folder) or case.adapter)
        witness = Witness(kit.adapter, kit.rig)
        with crash_named(kit.adapter), witness.listening():
            if accept:
                reading = read_case(kit.adapter, case, witness.opened)
                _refuse_crash(witness, reading)
                accept_reading(case, reading)
            difference = compare_case(kit.adapter, case, witness.opened)
            violation = violation_of(case, difference)
            place = place_of(violation, witness) if difference.text else ""
    except CaseError as failure:
        raise ConfigError(str(failure), fix=_("Correct the case.")) from failure
    return {
        "adapter": kit.adapter.name,
        "same": not difference.text,
        "difference": difference.text,
        "place": place,
        "program_wrote": witness.stderr_tail() if difference.text else "",
    }
