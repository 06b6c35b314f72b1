"""Recording what an adapter reads, as a case folder without secrets and customers' data.

This finds what it reads, and relays its HTTP; `redact.py` replaces what nobody else should see.
"""

import http.client
import json
import os
import shutil
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tomlkit
from pydantic import SecretStr, ValidationError

from tillbridge.adapter import Adapter, AdapterContext, NamesFiles
from tillbridge.adapter.conformance.cases import (
    EXPECTED,
    FILE,
    Answering,
    Case,
    read_case,
    readings,
    serving,
    with_addresses,
    written,
)
from tillbridge.adapter.registration import closing as closing_pos
from tillbridge.config.secrets import SecretSource, resolve_secret
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.redaction import MASK, masked_field
from tillbridge.pos.loader import first_fault
from tillbridge.pos.recording.redact import Redactor

_PATIENCE_S = 60.0
# What connections are about; the relay has connections of its own.
_NOT_HANDED_ON = {
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
}
_HEADERS = ("Content-Type", "ETag", "Link", "Retry-After")


@dataclass(slots=True)
class Traffic:
    """What went through: questions and replies, in their order."""

    exchanges: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(
        self, request: dict[str, Any], status: int, headers: Mapping[str, str], content: bytes
    ) -> None:
        """Record an exchange; a body that is no text is left out."""
        reply: dict[str, Any] = {"status": status}
        if headers:
            reply["headers"] = dict(headers)
        with self._lock:
            try:
                reply |= as_body(content.decode("utf-8"))
            except UnicodeDecodeError:
                self.left_out.append(f"{request['method']} {request['path']}: it is no text")
            self.exchanges.append({"request": request, "reply": reply})


@contextmanager
def relaying(origin: str, traffic: Traffic) -> Iterator[str]:
    """Hand requests on to `origin` (`https://till.example.net`); yields the relay's address."""

    class Handler(Answering):
        def answer_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _NOT_HANDED_ON
            }
            try:
                status, headers, content = _asked(origin, self.command, self.path, body, sent)
            except (OSError, http.client.HTTPException):
                self.close_connection = True  # as the till did; nothing is recorded of no answer
                return
            request = {"method": self.command, "path": self.path}
            request |= as_body(body.decode("utf-8", "replace")) if body else {}
            recorded_headers = {name: headers[name] for name in _HEADERS if name in headers}
            traffic.record(request, status, recorded_headers, content)
            back = {
                name: value
                for name, value in headers.items()
                if name.lower() not in _NOT_HANDED_ON | {"date", "server"}
            }
            self.reply(status, back, content)

    with serving(Handler) as address:
        yield address


def as_body(text: str) -> dict[str, Any]:
    """Return a body as it is in http.json: as JSON where that loses nothing."""
    try:
        value = json.loads(text)
        if json.loads(text, parse_float=str) == json.loads(
            json.dumps(value, ensure_ascii=False), parse_float=str
        ):
            return {"json": value}
    except (ValueError, RecursionError):
        pass
    return {"text": text} if text else {}


def _asked(
    origin: str, method: str, path: str, body: bytes, headers: Mapping[str, str]
) -> tuple[int, http.client.HTTPMessage, bytes]:
    parts = urlsplit(origin)
    connection = http.client.HTTPConnection(parts.netloc, timeout=_PATIENCE_S)
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(parts.netloc, timeout=_PATIENCE_S, context=context)
    with closing(connection):
        connection.request(method, path, body or None, dict(headers))
        response = connection.getresponse()
        return response.status, response.headers, response.read()


# Programs are the vendor's, not the till's.
_NO_EDGE = {"command", "cwd", "env"}


@dataclass(slots=True)
class Edges:
    """`files` are (where it lies, where in the case); `options` what is in case.toml."""

    options: dict[str, Any]
    files: dict[Path, Path] = field(default_factory=dict)
    folders: dict[Path, Path] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)

    def name_files(self, pos: object, base_dir: Path) -> None:
        """Add the files that the adapter names; those in a folder of an option stay in it."""
        if not isinstance(pos, NamesFiles):
            return
        for path in (*pos.catalogue_files(), *pos.availability_files(), *pos.table_files()):
            if path.is_file() and path not in self.files:
                self.files[path] = self._place(path, base_dir)

    def add(self, path: Path, base_dir: Path) -> None:
        """Add a file, or the files of a folder, that a person names."""
        for each in sorted(path.iterdir()) if path.is_dir() else [path]:
            if each.is_file():
                self.files[each] = self._place(each, base_dir)

    def _place(self, path: Path, base_dir: Path) -> Path:
        for folder, place in self.folders.items():
            if path.is_relative_to(folder):
                return place / path.relative_to(folder)
        return place_in_case(path, base_dir)


def edges_of(adapter: Adapter, options: Mapping[str, Any], base_dir: Path) -> Edges:
    """Look at an adapter's options. Raises ValidationError, ConfigError (a secret is not there)."""
    model = adapter.options.model_validate(dict(options))
    edges = Edges(dict(options))
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name == "env":
            edges.secrets += [os.environ[each] for each in value or () if os.environ.get(each)]
        elif isinstance(value, SecretStr | SecretSource):
            secret = resolve_secret(value, key=name, base_dir=base_dir).get_secret_value()
            edges.secrets.append(secret)
            edges.options[name] = secret  # another word is there once all is redacted
        elif name not in _NO_EDGE:
            found = _scanned(edges, name, value, base_dir)
            if name in options:
                edges.options[name] = found
    edges.options = {name: value for name, value in edges.options.items() if name not in _NO_EDGE}
    return edges


def place_in_case(path: Path, base_dir: Path) -> Path:
    """Return where in a case something lies: where it did, or in `files/`."""
    full, base = path.resolve(), base_dir.resolve()
    return full.relative_to(base) if full.is_relative_to(base) else Path("files") / path.name


def _scanned(edges: Edges, name: str, value: Any, base_dir: Path) -> Any:  # noqa: ANN401 -- an option of any kind
    """Record what an option says, and return it as it is in the case."""
    if isinstance(value, Mapping):
        return {key: _scanned(edges, str(key), part, base_dir) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_scanned(edges, name, part, base_dir) for part in value]
    if not isinstance(value, str | Path):
        return value
    text = str(value)
    if isinstance(value, str) and masked_field(name, value) == MASK:
        edges.secrets.append(value)
    parts = urlsplit(text)
    if parts.scheme in {"http", "https"} and parts.netloc:
        edges.secrets += [each for each in (parts.username, parts.password) if each]
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in edges.origins:
            edges.origins.append(origin)
        return text
    path = base_dir / text
    if text and path.is_file():
        edges.files[path] = place_in_case(path, base_dir)
        return edges.files[path].as_posix()
    if text and path.is_dir():
        edges.folders[path] = place_in_case(path, base_dir)
        return edges.folders[path].as_posix()
    return text


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
        return {**asdict(self), "folder": str(self.folder)}


def record(source: Source, folder: Path) -> Recorded:
    """Read once and make a case of it. Writes nothing into the till. Raises BridgeError."""
    if folder.exists():
        raise BridgeError(
            _("{folder} already exists.").format(folder=folder), fix=_("Choose another folder.")
        )
    try:
        edges = edges_of(source.adapter, source.options, source.base_dir)
    except ValidationError as failure:
        raise ConfigError(first_fault(failure), fix=_("Correct the adapter's options.")) from None
    for path in source.more:
        edges.add(source.base_dir / path, source.base_dir)
    traffic: dict[str, Traffic] = {origin: Traffic() for origin in edges.origins}
    before = _read(source, edges, traffic)
    if not edges.files and not any(each.exchanges for each in traffic.values()):
        raise BridgeError(
            _("The recorder cannot see what this adapter reads."),
            fix=_("Name its files with --with FILE; a database cannot be recorded."),
        )
    redactor = Redactor(os.urandom(16))
    for secret in edges.secrets:
        redactor.hide(secret)
    contents = {place: _content(path) for path, place in edges.files.items()}
    for place, content in contents.items():
        redactor.scan_file(place.name, content)
    # Each address has one that stands for it in a case: a host's name reveals a lot.
    named = {
        origin: f"http://till{number}.example.net" for number, origin in enumerate(edges.origins, 1)
    }
    exchanges = {alias: traffic[origin].exchanges for origin, alias in named.items()}
    redactor.scan_json(exchanges)
    for origin, alias in named.items():
        redactor.replace(origin, alias)

    making = Path(tempfile.mkdtemp(prefix="recording-"))
    try:
        for place in edges.folders.values():
            (making / place).mkdir(parents=True, exist_ok=True)
        for place, content in contents.items():
            (making / place).parent.mkdir(parents=True, exist_ok=True)
            (making / place).write_bytes(redactor.file(place.name, content))
        if any(exchanges.values()):
            text = json.dumps({"origins": redactor.value(exchanges)}, ensure_ascii=False, indent=1)
            (making / FILE).write_text(text + "\n", "utf-8")
        options = redactor.value(with_addresses(edges.options, named))
        (making / "case.toml").write_text(_case_toml(source, options), "utf-8")
        after = read_case(source.adapter, Case.of(making))
        (making / EXPECTED).write_text(written(after), "utf-8")
        _nothing_left(making, redactor)
        shutil.copytree(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    left_out = [line for each in traffic.values() for line in each.left_out]
    if (was := _counts(before)) != (now := _counts(after)):
        left_out.append(
            _("After redaction the adapter reads it differently: before {was}, now {now}.").format(
                was=was, now=now
            )
        )
    return Recorded(
        folder=folder,
        files=tuple(sorted(place.as_posix() for place in contents)),
        replies=sum(len(each.exchanges) for each in traffic.values()),
        redacted=redactor.count,
        counts=now,
        left_out=tuple(left_out),
    )


def _read(source: Source, edges: Edges, traffic: Mapping[str, Traffic]) -> Mapping[str, Any]:
    context = AdapterContext("record", source.currency, "record", source.base_dir)
    with ExitStack() as relays:
        addresses = {
            origin: relays.enter_context(relaying(origin, traffic[origin]))
            for origin in edges.origins
        }
        options = with_addresses(dict(source.options), addresses)
        try:
            pos = source.adapter.open(source.adapter.options.model_validate(options), context)
        except ValueError as failure:
            raise ConfigError(str(failure), fix=_("Correct the adapter's options.")) from failure
        with closing_pos(pos):
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
            fix=_("Give the bridge's user permission to read it."),
        ) from failure


def _nothing_left(folder: Path, redactor: Redactor) -> None:
    """Look once more through all that was made. Raises BridgeError."""
    for path in folder.rglob("*"):
        if path.is_file() and redactor.remains(path.read_bytes()):
            raise BridgeError(
                _("Not everything in {file} could be redacted, so nothing was saved.").format(
                    file=path.relative_to(folder)
                ),
                fix=_("Report the format of that file to us, without its content."),
            )


def _counts(reading: Mapping[str, Any]) -> Mapping[str, int]:
    """Return how many there are of each kind of thing; what availability names under that word."""
    found: dict[str, int] = {}
    for part, content in reading.items():
        for kind, things in content.items() if isinstance(content, Mapping) else ():
            if isinstance(things, list | dict):
                name = part if (part, kind) == ("availability", "items") else kind
                found[name] = found.get(name, 0) + len(things)
    return found


def _case_toml(source: Source, options: Mapping[str, Any]) -> str:
    about = "Recorded; say here what is odd about it"
    case = {"about": about, "adapter": source.adapter.name, "currency": source.currency}
    return toml_lines(case) + (f"\n[options]\n{toml_lines(options)}" if options else "")


# -- values as they are in a TOML file


def toml_lines(table: Mapping[str, Any]) -> str:
    """Return the lines of a table, `key = value` each, whatever is in it."""
    document = tomlkit.document()
    for key, value in table.items():
        document.add(str(key), _one_line(value))
    return tomlkit.dumps(document)


def _one_line(value: Any) -> Any:  # noqa: ANN401 -- a value of any kind; tomlkit's own
    if isinstance(value, Mapping):
        inline = tomlkit.inline_table()
        inline.update({str(key): _one_line(part) for key, part in value.items()})
        return inline
    if isinstance(value, list | tuple):
        return tomlkit.item([_one_line(part) for part in value])
    return tomlkit.item(value if isinstance(value, bool | int | float) else str(value))
