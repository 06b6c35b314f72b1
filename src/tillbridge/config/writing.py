"""Changes a configuration file as a careful person would: what is there stays, comments too.

The text is edited in place, shown as a difference without its secrets, and put in place of the old
one in one step, with a copy of that beside it. Which changes count at once is decided here.
"""

import difflib
import os
import re
import shutil
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tillbridge.config.bridge import Settings
from tillbridge.config.toml import KeyPath, dotted
from tillbridge.core.errors import ConfigError
from tillbridge.core.files import sync_folder, write_new
from tillbridge.core.i18n import _
from tillbridge.core.redaction import MASK, masked_value

_HEADER = re.compile(r"\s*\[")
_KEY_AND_TEXT = re.compile(r"""(?P<head>\s*["']?(?P<key>[^"'=#\[]+?)["']?\s*=\s*)["']""")

# A key's new value; None takes the key out.
Changes = Mapping[KeyPath, Any]


def edited(text: str, changes: Changes) -> str:
    """Return the TOML text with these keys changed, and nothing else.

    Raises ConfigError if the file is written in a way in which that cannot be done.
    """
    # Some hundred kilobytes, and only for whoever changes the file from here.
    import tomlkit  # noqa: PLC0415 -- see above
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 -- see above

    wanted = changed(tomllib.loads(text), changes)
    new = ""
    try:
        document = tomlkit.parse(text)
        for path, value in changes.items():
            _put(document, path, value)
        new = _spaced(text, tomlkit.dumps(document))
        right = tomllib.loads(new) == wanted
    except (TOMLKitError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError):
        right = False
    if not right:
        keys = ", ".join(dotted(path) for path in changes)
        raise ConfigError(
            _("The way the file is written, {keys} cannot be changed from here.").format(keys=keys),
            fix=_("Edit it by hand, and give each table its own [header]."),
        )
    return new


def _spaced(old: str, new: str) -> str:
    """Return the new text with an empty line before each table that the old one has not."""
    known = {line.strip() for line in old.splitlines()}
    lines: list[str] = []
    for line in new.splitlines(keepends=True):
        is_added = _HEADER.match(line) is not None and line.strip() not in known
        if is_added and lines and lines[-1].strip():
            lines.append("\r\n" if line.endswith("\r\n") else "\n")
        lines.append(line)
    return "".join(lines)


def changed(document: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """Return what the file says once these keys are changed."""
    new = deepcopy(dict(document))
    for path, value in changes.items():
        table = new
        *parents, key = map(str, path)
        for parent in parents:
            table = table.setdefault(parent, {})
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return new


def _put(document: Any, path: KeyPath, value: Any) -> None:  # noqa: ANN401 -- tomlkit's own kinds
    import tomlkit  # noqa: PLC0415 -- see `edited`

    *parents, key = map(str, path)
    table = document
    for place, parent in enumerate(parents):
        if parent not in table:
            # Only the innermost gets a header: [stores.main], and no [stores] above it.
            is_inline = isinstance(table, tomlkit.items.InlineTable)
            more = tomlkit.table(is_super_table=place < len(parents) - 1)
            table.add(parent, tomlkit.inline_table() if is_inline else more)
        table = table[parent]
    if value is None:
        if key in table:
            table.remove(key)
        return
    if isinstance(value, Mapping):
        inline = tomlkit.inline_table()
        inline.update(value)
        value = inline
    table[key] = value


def difference(old: str, new: str) -> list[str]:
    """Return the lines that change, as "+..." and "-...", each under its table's " [header]".

    No secret is in them, and nothing of what stays.
    """
    before, after = old.splitlines(), new.splitlines()
    lines: list[str] = []
    shown = ""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if kind == "equal":
            continue
        header = _header(after, new_from)
        first = next((line for line in after[new_from:new_to] if line.strip()), "")
        if header not in {"", shown} and not _HEADER.match(first):
            lines.append(f" {header}")
        lines += [f"-{_masked(line)}" for line in before[old_from:old_to] if line.strip()]
        lines += [f"+{_masked(line)}" for line in after[new_from:new_to] if line.strip()]
        shown = _header(after, new_to)
    return lines


def _header(lines: list[str], end: int) -> str:
    """Return the header of the table that is open before that line; "" at the top."""
    return next((line for line in reversed(lines[:end]) if _HEADER.match(line)), "")


def _masked(line: str) -> str:
    """Return a line without the secret in it."""
    found = _KEY_AND_TEXT.match(line)
    if found is not None and masked_value({found["key"]: "?"}) != {found["key"]: "?"}:
        return f'{found["head"]}"{MASK}"'
    return line


def replace_file(path: Path, text: str) -> Path | None:
    """Put the text in place of the file, and return the copy of the old one; None without one.

    Raises ConfigError if that cannot be done; the file is then as it was.
    """
    fix = _(
        "Give the bridge's user permission to write there, or change the file by hand as shown."
    )
    with _put_in_place(path, fix) as (target, beside):
        copy = _back_up(target)
        write_new(beside, text.encode(), 0o600)
        if copy is not None:
            shutil.copymode(target, beside)
    return copy


def put_back(path: Path, copy: Path) -> None:
    """Put a copy that `replace_file` made back in place. Raises ConfigError."""
    fix = _("Copy {copy} there by hand.").format(copy=copy)
    with _put_in_place(path, fix) as (_target, beside):
        shutil.copy2(copy, beside)


def may_be_replaced(path: Path) -> bool:
    """Whether this user may put another file in its place."""
    target = path.resolve()
    return os.access(target.parent, os.W_OK | os.X_OK) and os.access(target, os.W_OK)


@contextmanager
def _put_in_place(path: Path, fix: str) -> Iterator[tuple[Path, Path]]:
    """Yield the file that is meant, and a new one beside it, which then takes its place.

    Raises ConfigError if that cannot be done; the file is then as it was.
    """
    target = path.resolve()  # what a link names is changed, not the link
    beside = target.with_name(f".{target.name}.new")
    try:
        yield target, beside
        if target.exists():
            _copy_owner(target, beside)
        beside.replace(target)
        sync_folder(target.parent)
    except OSError as failure:
        beside.unlink(missing_ok=True)
        raise ConfigError(
            _("{path} cannot be written: {why}.").format(path=path, why=failure.strerror), fix=fix
        ) from failure


def _back_up(target: Path) -> Path | None:
    if not target.exists():
        return None
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(time.time()))
    copy = target.with_name(f"{target.name}.{stamp}.bak")
    number = 1
    while copy.exists():
        number += 1
        copy = target.with_name(f"{target.name}.{stamp}-{number}.bak")
    shutil.copy2(target, copy)  # its mode too: it may hold secrets
    _copy_owner(target, copy)
    return copy


def _copy_owner(target: Path, beside: Path) -> None:
    if sys.platform != "win32":
        owner = target.stat()
        mine = beside.stat()
        if (owner.st_uid, owner.st_gid) != (mine.st_uid, mine.st_gid):
            os.chown(beside, owner.st_uid, owner.st_gid)


# -- which settings count at once when the file changes, and which wait for a restart

# What counts at once. A name that ends with a dot: everything below it.
LIVE = (
    "bridge.log_level",
    "bridge.language",
    "bridge.keep_personal_data_days",
    "bridge.keep_history_days",
    "bridge.keep_backups",
    "bridge.disk_budget_mib",
    "bridge.drain_s",
    "status_page.users.",
    "status_page.allowed_hosts",
    "status_page.session_idle_s",
    "status_page.session_longest_s",
)
# These open the page, and `listen` says to whom: a page that was opened to a network for its
# passwords must not lose them before it stops listening there.
_GUARDED_BY_LISTEN = "status_page."


@dataclass(frozen=True, slots=True)
class Change:
    """Dotted keys that differ: those that count at once, and those that wait for a restart."""

    live: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def compare(old: Settings, new: Settings) -> Change:
    """Return what differs between two configurations. Pure."""
    differ = sorted(_differing(old.model_dump(), new.model_dump(), ""))
    listen_moves = "status_page.listen" in differ

    def counts_at_once(key: str) -> bool:
        if listen_moves and key.startswith(_GUARDED_BY_LISTEN):
            return False
        return any(key.startswith(live) if live.endswith(".") else key == live for live in LIVE)

    live = tuple(key for key in differ if counts_at_once(key))
    return Change(live, tuple(key for key in differ if key not in live))


def _differing(old: Any, new: Any, key: str) -> Iterator[str]:  # noqa: ANN401 -- any value of a setting
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in {*old, *new}:
            yield from _differing(old.get(name), new.get(name), f"{key}.{name}" if key else name)
    elif old != new:
        yield key
