"""Making the package of a new adapter from the template beside this file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _

_TEMPLATE = Path(__file__).with_name("template")
_NAME = re.compile(r"[a-z][a-z0-9_]{1,30}")
_SUFFIX = ".template"
# Of which folders beside this file a kind of till's package is made.
KINDS: Mapping[str, tuple[str, ...]] = {
    "files": ("package", "files"),
    "http": ("package", "http"),
    "sql": ("package", "sql"),
    "process": ("process",),
}


@dataclass(frozen=True, slots=True)
class MadePackage:
    """What was made; `files` relative to `folder`."""

    folder: Path
    files: tuple[Path, ...]


def make_package(name: str, folder: Path, kind: str = "files") -> MadePackage:
    """Make `folder/name` for a till of that kind.

    Raises ConfigError for a bad name or kind, BridgeError where something is.
    """
    if kind not in KINDS:
        raise ConfigError(
            _("“{kind}” is not a kind of adapter.").format(kind=kind),
            fix=_("Choose from: {kinds}.").format(kinds=", ".join(KINDS)),
        )
    if not _NAME.fullmatch(name):
        raise ConfigError(
            _("{name} cannot be the name of an adapter.").format(name=repr(name)),
            fix=_("Use 2 to 31 lower-case letters, digits and _, beginning with a letter."),
        )
    home = folder / name
    if home.exists():
        raise BridgeError(
            _("{folder} already exists.").format(folder=home),
            fix=_("Choose another name, or another folder with --in FOLDER."),
        )
    spaced = name.replace("_", " ")
    replaced = {
        "mytill": name,
        "MYTILL": name.upper(),
        "MyTill": spaced.title().replace(" ", ""),
        "my till": spaced,
    }
    files = []
    sources = {
        source.relative_to(_TEMPLATE / part): source
        for part in KINDS[kind]
        for source in (_TEMPLATE / part).rglob(f"*{_SUFFIX}")
    }
    for place, source in sorted(sources.items()):
        relative = Path(_filled(str(place), replaced))
        relative = relative.with_name(relative.name.removesuffix(_SUFFIX))
        target = home / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_filled(source.read_text("utf-8"), replaced), "utf-8")
        files.append(relative)
    return MadePackage(home, tuple(files))


def _filled(text: str, replaced: dict[str, str]) -> str:
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text
