"""What stands beside an adapter for its vendor and for whoever checks it: rig and quality.toml.

For an adapter whose entry point is in the module `tillbridge_mytill`, the rig is `RIG` in
`tillbridge_mytill.rig`, and `quality.toml` lies in that package. A source checkout has more around
it: README.md, sample.toml, tests/cases/.
"""

import importlib
import inspect
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tillbridge.adapter import Adapter
from tillbridge.adapter.conformance import Quality, QualityError, Rig, Violation, read_quality
from tillbridge.adapter.registration import home_of
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.pos.loader import find_adapter


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
    """Return what an adapter says of itself; None where it says nothing, or nothing right."""
    try:
        return _quality(home_of(adapter))
    except (ConfigError, TypeError):
        return None


def sample_options(root: Path) -> dict[str, Any]:
    """Return the options in sample.toml: the first [stores.NAME.pos] or [stores.NAME.orders].

    Raises Violation.
    """
    path = root / "sample.toml"
    try:
        stores = tomllib.loads(path.read_text("utf-8")).get("stores", {})
    except (OSError, tomllib.TOMLDecodeError) as failure:
        raise Violation(
            f"sample.toml: {failure}", fix="Write one that a restaurant can start from."
        ) from failure
    for store in stores.values():
        for table in ("pos", "orders"):
            if "adapter" in store.get(table, {}):
                return {key: value for key, value in store[table].items() if key != "adapter"}
    raise Violation(
        "sample.toml has no [stores.NAME.pos] with an adapter.",
        fix="Write the tables that a restaurant copies into bridge.toml.",
    )


def _program(folder: Path) -> Kit:
    """Return the kit of an adapter that is a program of its own."""
    # Only where there is one.
    from tillbridge.pos.process.vendor import vendor_folder  # noqa: PLC0415 -- (as above)

    found = vendor_folder(folder)
    home = folder.resolve()
    try:
        documented = tuple(sample_options(home).get("options", ()))
    except Violation:  # the check of the sample tells
        documented = ()
    return Kit(found.adapter, home, found.rig, _quality(home), home, documented)


def _entry_point(folder: Path) -> str:
    """Return `module:ATTR` of a package's folder, which need not be installed."""
    path = folder / "pyproject.toml"
    try:
        project = tomllib.loads(path.read_text("utf-8")).get("project", {})
    except (OSError, tomllib.TOMLDecodeError) as failure:
        raise ConfigError(
            f"{path}: {failure}", fix=_("Correct the file, or name another folder.")
        ) from failure
    entries = project.get("entry-points", {}).get("tillbridge.adapters", {})
    if not entries:
        raise ConfigError(
            _("{path} registers no adapter.").format(path=path),
            fix=_('Add [project.entry-points."tillbridge.adapters"] with one line.'),
        )
    source = folder / "src" if (folder / "src").is_dir() else folder
    if str(source.resolve()) not in sys.path:
        sys.path.insert(0, str(source.resolve()))
    return str(next(iter(entries.values())))


def _rig(package: str, adapter: Adapter) -> type[Rig] | None:
    try:
        module = importlib.import_module(f"{package}.rig")
    except ModuleNotFoundError as missing:
        if missing.name == f"{package}.rig":
            return None
        raise ConfigError(
            _("The rig of {name} cannot be loaded: {detail}").format(
                name=adapter.name, detail=missing
            ),
            fix=_("Install what it needs."),
        ) from missing
    rig = getattr(module, "RIG", None)
    if not (isinstance(rig, type) and issubclass(rig, Rig)):
        raise ConfigError(
            _("{module} has no RIG, which must be a class derived from Rig.").format(
                module=f"{package}.rig"
            ),
            fix=_("Write there: RIG = MyRig."),
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
