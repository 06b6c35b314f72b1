"""What is beside an adapter for its vendor and for whoever tries it: rig, quality.toml, sample.

For an adapter whose entry point is in the module `tillbridge_mytill`, the rig is `RIG` in
`tillbridge_mytill.rig`, and `quality.toml` lies in that package. A source checkout has more around
it: README.md, sample.toml, tests/cases/. `trial_of` looks at what an opened adapter
reads; nothing is pushed, nothing is stored.
"""

import importlib
import inspect
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tillbridge.adapter import (
    Adapter,
    Catalogue,
    PosFailure,
    ReportsHealth,
)
from tillbridge.adapter.conformance import Quality, QualityError, Rig, Violation, read_quality
from tillbridge.adapter.conformance.cases import read_all, reading_json
from tillbridge.adapter.registration import home_of
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.catalogue import MenuSummary
from tillbridge.pos.loader import find_adapter, import_remedy, read_toml


@dataclass(frozen=True, slots=True)
class Kit:
    """An adapter with what was found beside it. `root` is its source checkout, if it is one."""

    adapter: Adapter
    package: Path
    rig: type[Rig] | None
    quality: Quality | None
    root: Path | None
    # The options that its README must name; None: all it has.
    documented: tuple[str, ...] | None = None


def find_kit(name: str) -> Kit:
    """Return the kit of an installed adapter, of `module:ATTR`, or of a package's folder.

    Raises ConfigError, for a quality.toml that is not right too.
    """
    folder = Path(name)
    if (folder / "process.toml").is_file():
        return _program(folder)
    if folder.is_dir() and (folder / "pyproject.toml").is_file():
        name = _entry_point(folder)
    adapter = find_adapter(name)
    module = inspect.getmodule(adapter.open)
    if module is None or module.__file__ is None:
        raise ConfigError(
            _("The adapter {name} does not say in which file it is.").format(name=adapter.name),
            fix=_("Make `open` of its Adapter a function or class of a module."),
        )
    package = Path(module.__file__).parent
    return Kit(
        adapter=adapter,
        package=package,
        rig=_rig(module.__package__ or module.__name__, adapter),
        quality=_quality(package),
        root=next(_roots(package), None),
    )


def find_quality(adapter: Adapter) -> Quality | None:
    """Return what an adapter says of itself; None if it says nothing, or nothing right."""
    try:
        return _quality(home_of(adapter))
    except (ConfigError, TypeError):
        return None


def sample_options(root: Path) -> dict[str, Any]:
    """Return the options in sample.toml: the first [stores.NAME.pos] or [stores.NAME.orders].

    Raises Violation.
    """
    try:
        options = _first_options(read_toml(root / "sample.toml"))
    except ConfigError as failure:
        raise Violation(
            failure.text, fix="Write one that a restaurant can start from."
        ) from failure
    if options is None:
        raise Violation(
            "sample.toml has no [stores.NAME.pos] with an adapter.",
            fix="Write the tables that a restaurant copies into bridge.toml.",
        )
    return options


def options_of_sample(path: Path) -> dict[str, Any]:
    """Return an adapter's options from [stores.NAME.pos] of a TOML file, or from its top.

    Raises ConfigError.
    """
    if not path.is_file():
        raise ConfigError(
            _("{path} does not exist, so nothing says where the till is.").format(path=path),
            fix=_(
                "Put into it what a restaurant copies into bridge.toml: [stores.main.pos] with "
                "the adapter and its options. Or name another file with --sample FILE."
            ),
        )
    content = read_toml(path)
    options = _first_options(content)
    return {k: v for k, v in content.items() if k != "adapter"} if options is None else options


def _first_options(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of the first adapter that a store has, None if no store has one."""
    for store in content.get("stores", {}).values():
        for table in ("pos", "orders"):
            if "adapter" in store.get(table, {}):
                return {key: value for key, value in store[table].items() if key != "adapter"}
    return None


def _program(folder: Path) -> Kit:
    """Return the kit of an adapter that is a program of its own."""
    # Only where there is one.
    from tillbridge.pos.process.vendor import vendor_folder  # noqa: PLC0415 -- (as above)

    adapter, rig = vendor_folder(folder)
    home = folder.resolve()
    try:
        documented = tuple(sample_options(home).get("options", ()))
    except Violation:  # the check of the sample reports it
        documented = ()
    return Kit(adapter, home, rig, _quality(home), home, documented)


def _entry_point(folder: Path) -> str:
    """Return `module:ATTR` of a package's folder, which need not be installed."""
    path = folder / "pyproject.toml"
    project = read_toml(path).get("project", {})
    entries = project.get("entry-points", {}).get("tillbridge.adapters", {})
    if not entries:
        raise ConfigError(
            _("{path} does not register an adapter.").format(path=path),
            fix=_('Add [project.entry-points."tillbridge.adapters"] with one line.'),
        )
    source = folder / "src" if (folder / "src").is_dir() else folder
    if str(source.resolve()) not in sys.path:
        sys.path.insert(0, str(source.resolve()))
    return str(next(iter(entries.values())))


def _rig(package: str, adapter: Adapter) -> type[Rig] | None:
    try:
        module = importlib.import_module(f"{package}.rig")
    except Exception as failure:  # whatever the import of somebody else's code raises
        detail = f"{type(failure).__name__}: {failure}"
        if isinstance(failure, ModuleNotFoundError):
            if failure.name == f"{package}.rig":
                return None
            detail = str(failure)
        raise ConfigError(
            _("The test rig of {name} cannot be loaded: {detail}").format(
                name=adapter.name, detail=detail
            ),
            fix=import_remedy(failure, package) or _("Install the packages it needs."),
        ) from failure
    rig = getattr(module, "RIG", None)
    if not (isinstance(rig, type) and issubclass(rig, Rig)):
        raise ConfigError(
            _("{module} has no RIG. It must be a class derived from Rig.").format(
                module=f"{package}.rig"
            ),
            fix=_("Add the line: RIG = MyRig"),
        )
    return rig


def _quality(package: Path) -> Quality | None:
    path = package / "quality.toml"
    if not path.is_file():
        return None
    try:
        return read_quality(path)
    except QualityError as failure:
        raise ConfigError(
            str(failure), fix=_("Correct quality.toml; see docs/adapters/writing.md.")
        ) from failure


def _roots(package: Path) -> Iterator[Path]:
    """Return the folders above that are this adapter's own source checkout."""
    for folder in list(package.parents)[:3]:
        path = folder / "pyproject.toml"
        if path.is_file():
            try:
                project = tomllib.loads(path.read_text("utf-8")).get("project", {})
            except tomllib.TOMLDecodeError:
                return
            if "tillbridge" in " ".join(project.get("dependencies", ())):
                yield folder
            return


# -- looking at what an adapter reads

_LOOK_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One look: health, catalogue, availability, tables, as far as the adapter has them.

    `readings` are JSON values; one that failed holds `error` and `fix`.
    """

    readings: Mapping[str, Any]
    summary: MenuSummary | None = None  # of the catalogue, if that could be read


def trial_of(pos: object, *, is_case: bool = False) -> Trial:
    """Read all there is to read, once. Of a case only that: it has no till that could be there."""
    readings: dict[str, Any] = {}
    summary = None
    if isinstance(pos, ReportsHealth) and not is_case:
        health = pos.health()
        readings["health"] = {"online": health.online, "detail": health.detail}
    for name, found in read_all(pos):
        readings[name] = reading_json(found)
        if isinstance(found, PosFailure):
            readings[name]["fix"] = found.fix or _(
                "Check that the till is running and that the options are right."
            )
        if isinstance(found, Catalogue):
            summary = MenuSummary.of(found)
    return Trial(readings, summary)


def trials(pos: object) -> Iterator[Trial]:
    """Read again and again, and yield what differs from before; until it is interrupted."""
    before: Trial | None = None
    while True:
        now = trial_of(pos)
        if now != before:
            yield now
            before = now
        time.sleep(_LOOK_AGAIN_S)
