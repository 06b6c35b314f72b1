"""Case folders: one thing that real exports do, with the files and what must be read from them.

`case.toml` says what it is about, the options, and the currency; the export's files lie beside it;
`expected.json` is what a right adapter reads. Anybody can add one, without writing code.
"""

import difflib
import json
import shutil
import tempfile
import threading
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tillbridge.adapter.failures import ExportUnreadable, PosFailure
from tillbridge.adapter.protocols import ReadsAvailability, ReadsCatalogue, ReadsTables
from tillbridge.adapter.registration import Adapter, AdapterContext, closing
from tillbridge.adapter.values import AvailabilityReading, TablesReading, catalogue_json, part_json
from tillbridge.model.catalogue import Catalogue
from tillbridge.model.numbers import map_leaves


class CaseError(ValueError):
    """A case folder is not right, in words."""


FILE = "http.json"
_LONGEST_TEXT = 200


@dataclass(slots=True)
class Answers:
    """What one address answered. `strange` collects what was asked and had not been recorded."""

    exchanges: list[Mapping[str, Any]]
    strange: list[str]
    _used: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, method: str, path: str, body: str) -> Mapping[str, Any]:
        """Return the reply; of several to the same question the next, and then the last again."""
        asked = question(method, path, body)
        with self._lock:
            found = [each["reply"] for each in self.exchanges if _question_of(each) == asked]
            if not found:
                request = f"{method} {path} {body}".strip()[:_LONGEST_TEXT]
                if request not in self.strange:
                    self.strange.append(request)
                return {"status": 501, "text": "This was not recorded."}
            number = self._used.get(asked, 0)
            self._used[asked] = number + 1
            reply: Mapping[str, Any] = found[min(number, len(found) - 1)]
            return reply


@contextmanager
def replaying(folder: Path, strange: list[str]) -> Iterator[Mapping[str, str]]:
    """Give the recorded answers of a case folder, if it has any. Raises CaseError.

    Yields what stands for each recorded address; `strange` collects what had not been recorded.
    """
    path = folder / FILE
    if not path.is_file():
        yield {}
        return
    try:
        origins = json.loads(path.read_text("utf-8"))["origins"]
    except (OSError, ValueError, KeyError) as failure:
        raise CaseError(f"{path}: {failure!r} (it holds origins)") from failure
    with ExitStack() as servers:
        addresses = {}
        for origin, exchanges in origins.items():
            answers = Answers(list(exchanges), strange)
            addresses[origin] = servers.enter_context(_serving(answers))
        yield addresses


def with_addresses(value: Any, addresses: Mapping[str, str]) -> Any:  # noqa: ANN401 -- an option of any kind
    """Return an option in which each address is replaced by the one that stands for it."""

    def replaced(text: object) -> object:
        if isinstance(text, str):
            for old, new in addresses.items():
                if text == old or text.startswith(f"{old}/"):
                    return new + text[len(old) :]
        return text

    return map_leaves(value, replaced)


def question(method: str, path: str, body: str) -> str:
    """Return what makes two questions the same: JSON bodies are, whatever their spaces."""
    with suppress(ValueError):
        body = json.dumps(json.loads(body), sort_keys=True)
    return f"{method} {path}\n{body}"


def body_of(part: Mapping[str, Any]) -> str:
    """Return the body of a recorded request or reply."""
    if "json" in part:
        return json.dumps(part["json"], ensure_ascii=False)
    return str(part.get("text", ""))


def _question_of(exchange: Mapping[str, Any]) -> str:
    request = exchange["request"]
    return question(request["method"], request["path"], body_of(request))


@contextmanager
def _serving(answers: Answers) -> Iterator[str]:
    class Handler(Answering):
        def answer_one(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode("utf-8", "replace")
            reply = answers.answer(self.command, self.path, body)
            self.reply(
                int(reply.get("status", 200)), reply.get("headers", {}), body_of(reply).encode()
            )

    with serving(Handler) as address:
        yield address


class Answering(BaseHTTPRequestHandler, ABC):
    """Answers every kind of request in `answer_one`, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for kind in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            setattr(cls, f"do_{kind}", cls.answer_one)

    @abstractmethod
    def answer_one(self) -> None:
        """Answer."""

    def reply(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Send a reply."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- as it is called there
        """Say nothing."""


@contextmanager
def serving(handler: type[Answering]) -> Iterator[str]:
    """Serve on a free loopback port; yields the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


EXPECTED = "expected.json"
_KEYS = {"about", "adapter", "currency", "location_id", "options"}


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its folder, and what `case.toml` says."""

    folder: Path
    about: str
    currency: str = "EUR"
    location_id: str = "case"
    options: Mapping[str, Any] = field(default_factory=dict)
    adapter: str = ""  # whose it is, where it was recorded

    @classmethod
    def of(cls, folder: Path) -> "Case":
        """Read `case.toml`. Raises CaseError."""
        path = folder / "case.toml"
        try:
            table = tomllib.loads(path.read_text("utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as failure:
            raise CaseError(f"{path}: {failure}") from failure
        if strange := sorted(table.keys() - _KEYS):
            raise CaseError(
                f"{path}: {strange[0]} is no key of a case; there are {', '.join(sorted(_KEYS))}."
            )
        if not table.get("about"):
            raise CaseError(f"{path}: about is missing; say in a sentence what the case shows.")
        return cls(folder=folder, **table)


def case_folders(folder: Path) -> Sequence[Path]:
    """Return the cases below a folder, by name."""
    return sorted(path.parent for path in folder.glob("*/case.toml"))


def read_case(
    adapter: Adapter, case: Case, on_open: Callable[[object], None] = lambda _pos: None
) -> dict[str, Any]:
    """Return what the adapter reads from the case's files, as JSON values.

    It works on a copy: an adapter may make files of its own. `on_open` gets what was opened.
    """
    return _read(adapter, case, on_open)[0]


def _read(
    adapter: Adapter, case: Case, on_open: Callable[[object], None]
) -> tuple[dict[str, Any], dict[str, Exception]]:
    """Return what is read, and why each part that cannot be read cannot."""
    failures: dict[str, Exception] = {}
    with copied_case(case) as (home, options, strange):
        context = AdapterContext(
            store="case", currency=case.currency, location_id=case.location_id, base_dir=home
        )
        try:
            pos = adapter.open(adapter.options.model_validate(options), context)
        except ValueError as failure:
            return {"options": {"error": _without(options_error(failure), home)}}, {}
        on_open(pos)
        found: dict[str, Any] = {}
        with closing(pos):
            for name, reading in read_all(pos):
                found[name] = map_leaves(reading_json(reading), partial(_without, home=home))
                if isinstance(reading, Exception):
                    failures[name] = reading
        if strange:
            found["http"] = {"not_recorded": list(strange)}
    return found, failures


@contextmanager
def copied_case(case: Case) -> Iterator[tuple[Path, dict[str, Any], list[str]]]:
    """Yield a copy of a case's folder, the options with the addresses that answer as recorded.

    The list collects what was asked and had not been recorded.
    """
    with tempfile.TemporaryDirectory(prefix="case-", ignore_cleanup_errors=True) as copy:
        home = Path(copy)
        shutil.copytree(case.folder, home, dirs_exist_ok=True)
        strange: list[str] = []
        with replaying(home, strange) as addresses:
            yield home, with_addresses(dict(case.options), addresses), strange


def run_case(adapter: Adapter, case: Case) -> str:
    """Return the difference between the reading and the expected one; "" if there is none.

    Raises CaseError, a ValueError, for options that do not fit the adapter.
    """
    return compare_case(adapter, case).text


@dataclass(frozen=True, slots=True)
class Difference:
    """How a case is read differently than expected: `text` is that in lines, "" for not at all.

    `part` is the first reading that differs ("catalogue"), `failure` why it cannot be read, and
    `refused` what is said of the first record that should not have been refused.
    """

    text: str = ""
    part: str = ""
    failure: Exception | None = None
    refused: str = ""


def compare_case(
    adapter: Adapter, case: Case, on_open: Callable[[object], None] = lambda _pos: None
) -> Difference:
    """Compare what the adapter reads with what is expected. Raises CaseError."""
    path = case.folder / EXPECTED
    found, failures = _read(adapter, case, on_open)
    try:
        expected = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        expected = {}
    except (OSError, ValueError) as failure:
        raise CaseError(f"{path}: {failure}") from failure
    if "options" in found and "options" not in expected:
        raise CaseError(
            f"{case.folder.name}: The options in case.toml do not fit the adapter: "
            f"{found['options']['error']}"
        )
    try:
        now = written(found)
    except ValueError as odd:
        return Difference(str(odd))
    lines = difflib.unified_diff(
        written(expected).splitlines() if expected else [],
        now.splitlines(),
        "expected",
        "read",
        lineterm="",
        n=2,
    )
    text = "\n".join(lines)
    part = next((name for name in found if found[name] != expected.get(name)), "") if text else ""
    known = expected.get(part, {}).get("bad_rows", ())
    refused = (row["text"] for row in found.get(part, {}).get("bad_rows", ()) if row not in known)
    return Difference(text, part, failures.get(part), next(refused, ""))


def accept_reading(case: Case, reading: Mapping[str, Any]) -> None:
    """Write what the adapter reads now into `expected.json`. Raises CaseError."""
    try:
        (case.folder / EXPECTED).write_text(written(reading), "utf-8")
    except ValueError as odd:
        raise CaseError(str(odd)) from odd


def written(reading: Mapping[str, Any]) -> str:
    """Return a reading as it is in `expected.json`. Raises ValueError."""
    return json.dumps(reading, ensure_ascii=False, indent=2, default=_refuse) + "\n"


def _refuse(odd: object) -> None:
    raise ValueError(
        f"The adapter reads {odd!r}, a {type(odd).__name__}: times are whole milliseconds since"
        " 1970, and amounts whole minor units."
    )


def readings(pos: object) -> Iterator[tuple[str, Any]]:
    """Return all that is read from an adapter, as JSON values, and what it says it cannot read."""
    return ((name, reading_json(found)) for name, found in read_all(pos))


Reading = Catalogue | AvailabilityReading | TablesReading | ExportUnreadable | PosFailure


def read_all(pos: object) -> Iterator[tuple[str, Reading]]:
    """Read all that an adapter can read, once: each part by its name, or why it cannot be read."""
    parts: dict[str, Callable[[], Reading]] = {}
    if isinstance(pos, ReadsCatalogue):
        parts["catalogue"] = pos.read_catalogue
    if isinstance(pos, ReadsAvailability):
        parts["availability"] = pos.read_availability
    if isinstance(pos, ReadsTables):
        parts["tables"] = pos.read_tables
    for name, read in parts.items():
        try:
            yield name, read()
        except (ExportUnreadable, PosFailure) as failure:
            yield name, failure


def reading_json(found: Reading) -> dict[str, Any]:
    """Return what was read as JSON values; a failure as `error`."""
    match found:
        case Catalogue():
            return catalogue_json(found)
        case AvailabilityReading() | TablesReading():
            return part_json(found)
        case ExportUnreadable():
            return {"error": found.text, "place": found.place, "fix": found.fix}
        case PosFailure():
            return {"error": f"{type(found).__name__}: {found.message}"}


def options_error(failure: ValueError) -> str:
    """Return what is wrong with options, a sentence for each."""
    if not isinstance(failure, ValidationError):
        return str(failure)
    faults = failure.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in faults
    )


def _without(value: object, home: Path) -> object:
    """Leave out of a text where the copy lies, which is another place each time."""
    if isinstance(value, str):
        return value.replace(f"{home}/", "").replace(str(home), ".")
    return value
