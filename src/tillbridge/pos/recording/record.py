"""Recording: read once, keep what was read and said, and make a case folder of it."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tillbridge.adapter import Adapter, AdapterContext
from tillbridge.adapter.conformance.cases import EXPECTED, Case, read_case, readings, written
from tillbridge.adapter.conformance.recorded import FILE, with_addresses
from tillbridge.adapter.registration import closing
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.pos.recording.edges import Edges, aliases, edges_of
from tillbridge.pos.recording.redact import Redactor
from tillbridge.pos.recording.relay import Heard, relaying
from tillbridge.pos.toml_text import toml_lines, toml_value

_LARGEST = 64 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A till to record: an adapter with its options."""

    adapter: Adapter
    options: Mapping[str, Any]
    currency: str
    base_dir: Path
    more: Sequence[Path] = ()  # what a person names besides


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded. `counts` are of items, categories, ... ; `left_out` in plain words."""

    folder: Path
    files: tuple[str, ...]
    replies: int
    redacted: int
    counts: Mapping[str, int]
    left_out: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        return {
            "folder": str(self.folder),
            "files": list(self.files),
            "replies": self.replies,
            "redacted": self.redacted,
            "counts": dict(self.counts),
            "left_out": list(self.left_out),
        }


def record(source: Source, folder: Path) -> Recorded:
    """Read once and make a case of it. Writes nothing into the till. Raises BridgeError."""
    if folder.exists():
        raise BridgeError(
            _("{folder} is there already.").format(folder=folder), fix=_("Name another folder.")
        )
    edges = _edges(source)
    heard: dict[str, Heard] = {origin: Heard() for origin in edges.origins}
    before = _read(source, edges, heard)
    if not edges.files and not any(each.exchanges for each in heard.values()):
        raise BridgeError(
            _("Nothing of what the adapter reads can be seen from outside."),
            fix=_("Name its files with --with FILE; a database cannot be recorded."),
        )
    redactor = Redactor(os.urandom(16))
    for secret in edges.secrets:
        redactor.learn(secret)
    contents = {place: _content(path) for path, place in edges.files.items()}
    for place, content in contents.items():
        redactor.look_at_file(place.name, content)
    spoken = {alias: heard[origin].exchanges for origin, alias in aliases(edges.origins)}
    redactor.look_at_json(spoken)
    named = dict(aliases(edges.origins))
    for origin in edges.origins:
        redactor.learn_as(origin, named[origin])

    making = Path(tempfile.mkdtemp(prefix="recording-"))
    try:
        for place in edges.folders.values():
            (making / place).mkdir(parents=True, exist_ok=True)
        for place, content in contents.items():
            (making / place).parent.mkdir(parents=True, exist_ok=True)
            (making / place).write_bytes(redactor.file(place.name, content))
        if any(spoken.values()):
            text = json.dumps({"origins": redactor.value(spoken)}, ensure_ascii=False, indent=1)
            (making / FILE).write_text(text + "\n", "utf-8")
        options = redactor.value(with_addresses(edges.options, named))
        (making / "case.toml").write_text(_casetoml_value(source, options), "utf-8")
        after = read_case(source.adapter, Case.of(making))
        (making / EXPECTED).write_text(written(after), "utf-8")
        _nothing_left(making, redactor)
        shutil.copytree(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    left_out = [line for each in heard.values() for line in each.left_out]
    if (was := _counts(before)) != (now := _counts(after)):
        left_out.append(
            _("Redacted, it is read differently: {was}, and now {now}.").format(was=was, now=now)
        )
    return Recorded(
        folder=folder,
        files=tuple(sorted(place.as_posix() for place in contents)),
        replies=sum(len(each.exchanges) for each in heard.values()),
        redacted=redactor.count,
        counts=now,
        left_out=tuple(left_out),
    )


def _edges(source: Source) -> Edges:
    try:
        edges = edges_of(source.adapter, source.options, source.base_dir)
    except ValidationError as failure:
        first = failure.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"{place}: {first['msg']}", fix=_("Correct the adapter's options.")
        ) from None
    for path in source.more:
        edges.add(source.base_dir / path, source.base_dir)
    return edges


def _read(source: Source, edges: Edges, heard: Mapping[str, Heard]) -> Mapping[str, Any]:
    context = AdapterContext("record", source.currency, "record", source.base_dir)
    with ExitStack() as relays:
        addresses = {
            origin: relays.enter_context(relaying(origin, heard[origin]))
            for origin in edges.origins
        }
        options = with_addresses(dict(source.options), addresses)
        try:
            pos = source.adapter.open(source.adapter.options.model_validate(options), context)
        except ValueError as failure:
            raise ConfigError(str(failure), fix=_("Correct the adapter's options.")) from failure
        with closing(pos):
            found = dict(readings(pos))
            edges.name_files(pos, source.base_dir)
    return found


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > _LARGEST:
            raise BridgeError(
                _("{path} is larger than 64 MB.").format(path=path),
                fix=_("Record a till with a smaller export."),
            )
        return path.read_bytes()
    except OSError as failure:
        raise BridgeError(
            _("{path} cannot be read: {why}.").format(path=path, why=failure.strerror),
            fix=_("Let the bridge's user read it."),
        ) from failure


def _nothing_left(folder: Path, redactor: Redactor) -> None:
    """Look once more through all that was made. Raises BridgeError."""
    for path in folder.rglob("*"):
        if path.is_file() and redactor.remains(path.read_bytes()):
            raise BridgeError(
                _("Not everything in {file} could be made unreadable, so nothing was kept.").format(
                    file=path.relative_to(folder)
                ),
                fix=_("Tell us about the form of that file, without its content."),
            )


def _counts(reading: Mapping[str, Any]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for part in reading.values():
        for name, things in part.items() if isinstance(part, Mapping) else ():
            if isinstance(things, list | dict):
                found[name] = found.get(name, 0) + len(things)
    return found


def _casetoml_value(source: Source, options: Mapping[str, Any]) -> str:
    lines = [
        'about    = "Recorded; say here what is odd about it"',
        f"adapter  = {toml_value(source.adapter.name)}",
        f"currency = {toml_value(source.currency)}",
    ]
    if options:
        lines += ["", "[options]", *toml_lines(options)]
    return "\n".join(lines) + "\n"
