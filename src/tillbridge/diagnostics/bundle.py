"""What goes into a bundle for support, and the file it becomes."""

import io
import json
import locale
import sys
import time
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tillbridge.config.loading import LoadedSettings
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import ADAPTERS, _
from tillbridge.core.log import LOG_FOLDER
from tillbridge.core.redaction import HARMLESS_OPTION
from tillbridge.diagnostics.checks.bridge import versions
from tillbridge.diagnostics.known import (
    Scrubber,
    adapter_sections,
    personal_of,
    pieces_of,
    secrets_here,
)
from tillbridge.diagnostics.log_lines import LogFilter, latest
from tillbridge.ledger import audit, schema
from tillbridge.ledger.backend import connected
from tillbridge.ledger.problems import past_problems
from tillbridge.ledger.prune import payloads, row_counts, table_codes
from tillbridge.ledger.reading import place_in
from tillbridge.model.instant import to_iso

Answer = Mapping[str, Any]

_LOG_LINES = 4000
_AUDIT_ENTRIES = 500
_PAST_PROBLEMS = 500
_PAST_MS = 30 * 86_400_000


@dataclass(slots=True)
class _Ledger:
    """What of the ledger goes in, and what must go nowhere."""

    facts: dict[str, Any] = field(default_factory=dict)
    audit: dict[str, Any] = field(default_factory=dict)
    past: list[dict[str, Any]] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    personal: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a bundle; `text` is fit to be shown to anybody."""

    name: str
    text: str

    @classmethod
    def of_json(cls, name: str, value: object) -> "Part":
        """Return a file with this JSON value in it."""
        return cls(name, json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")

    @property
    def data(self) -> bytes:
        """The file as it is written."""
        return self.text.encode("utf-8", "replace")

    def preview(self) -> dict[str, Any]:
        """Return `name`, `size` in bytes, and the `first` lines."""
        lines = [line for line in self.text.splitlines() if line.strip(" {}[],")]
        first = [_short(line.strip()) for line in lines[:_FIRST_LINES]]
        return {"name": self.name, "size": len(self.data), "first": first}


@dataclass(frozen=True, slots=True)
class Bundle:
    """All files of a bundle, made at `made_at` (ms since the epoch)."""

    parts: tuple[Part, ...]
    made_at: int

    @property
    def file_name(self) -> str:
        """Return what the zip is called."""
        return f"tillbridge-support-{self._moment():%Y%m%d-%H%M%S}.zip"

    def preview(self) -> list[dict[str, Any]]:
        """Return what a person sees before it is written."""
        return [part.preview() for part in self.parts]

    def zipped(self) -> bytes:
        """Return the zip file."""
        folder = self.file_name.removesuffix(".zip")
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in self.parts:
                entry = zipfile.ZipInfo(f"{folder}/{part.name}", self._moment().timetuple()[:6])
                entry.external_attr = 0o600 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, part.data)
        return file.getvalue()

    def _moment(self) -> datetime:
        return datetime.fromtimestamp(self.made_at / 1000, UTC)


def _short(line: str) -> str:
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"


def gather(loaded: LoadedSettings, status: Answer, doctor: Answer, *, now_ms: int) -> Bundle:
    """Return the bundle; `status` and `doctor` are what these commands answer as JSON. Blocks.

    Reads files and the ledger, of a bridge that runs too, and changes none. What cannot be read is
    told as such in its place.
    """
    ledger = _ledger(loaded, now_ms)
    documents: list[tuple[str, object]] = [
        ("versions.json", _versions(now_ms)),
        ("configuration.json", _configuration(loaded)),
        ("status.json", status),
        ("doctor.json", doctor),
        ("problems.json", {"open": status.get("problems", []), "past": ledger.past}),
        ("adapters.json", _adapters(loaded, doctor)),
        ("ledger.json", ledger.facts),
        ("audit.json", ledger.audit),
        ("files.json", _files(loaded.data_dir)),
    ]
    lines = latest(loaded.data_dir / LOG_FOLDER, LogFilter(), _LOG_LINES)
    secrets = secrets_here(loaded) | ledger.codes
    scrub = Scrubber(secrets, ledger.personal, among=pieces_of([documents, lines]))
    parts = [Part.of_json(name, scrub.value(value)) for name, value in documents]
    shown = (json.dumps(scrub.value(line), ensure_ascii=False) for line in lines)
    parts.append(Part("log.jsonl", "".join(f"{line}\n" for line in shown)))
    # Once more over each file whole, for what a text was cut into.
    parts = [Part(part.name, scrub.known(part.text)) for part in parts]
    return Bundle((Part("README.txt", _readme(parts, now_ms)), *parts), now_ms)


def _versions(now_ms: int) -> Answer:
    installed = {str(each.metadata["Name"]): each.version for each in metadata.distributions()}
    return {
        "made_at": to_iso(now_ms),
        "versions": versions(),
        "python": {"executable": sys.executable, "prefix": sys.prefix, "version": sys.version},
        "time_zone": list(time.tzname),
        "utc_offset_s": -time.timezone if not time.localtime().tm_isdst else -time.altzone,
        "encoding": locale.getpreferredencoding(do_setlocale=False),
        "installed": dict(sorted(installed.items(), key=lambda each: each[0].lower())),
    }


def _configuration(loaded: LoadedSettings) -> Answer:
    settings = loaded.settings.model_dump(mode="json")
    for name, store in loaded.settings.stores.items():
        for part, section in adapter_sections(store).items():
            for option, value in section.options.items():
                settings["stores"][name][part][option] = _option(option, value)
    alerts = settings.get("alerts") or {}
    if alerts.get("heartbeat_url"):
        alerts["heartbeat_url"] = _("(address removed)")
    return {"file": str(loaded.path), "settings": settings}


def _option(name: str, value: object) -> object:
    """Return an adapter's option as far as it may be shown: which are secret is not declared."""
    if isinstance(value, Mapping):
        return {str(each): _option(str(each), part) for each, part in value.items()}
    if isinstance(value, bool) or value is None or HARMLESS_OPTION.search(name):
        return value
    return _("({kind} removed)").format(kind=type(value).__name__)


def _adapters(loaded: LoadedSettings, doctor: Answer) -> Answer:
    results = doctor.get("results", [])
    probes = [each for each in results if str(each.get("name", "")).split(".")[0] == "till"]
    return {
        "stores": {
            name: {
                "adapter": store.pos.adapter,
                "orders_adapter": store.orders.adapter,
                "probe": [each for each in probes if each.get("store") == name],
            }
            for name, store in loaded.settings.stores.items()
        },
        "installed": [
            {
                "name": entry.name,
                "at": entry.value,
                "distribution": entry.dist.name if entry.dist else "",
                "version": entry.dist.version if entry.dist else "",
            }
            for entry in metadata.entry_points(group=ADAPTERS)
        ],
    }


def _ledger(loaded: LoadedSettings, now_ms: int) -> _Ledger:
    found = _Ledger()
    try:
        with connected(place_in(loaded)) as connection:
            _read(connection, found, now_ms)
    except (BridgeError, SQLAlchemyError) as failure:
        found.facts = {"error": f"{type(failure).__name__}: {failure}"}
        # Without knowing whose data it holds, none of it may go in.
        found.audit, found.past = {}, []
    return found


def _read(connection: Connection, found: _Ledger, now_ms: int) -> None:
    for payload in payloads(connection):
        found.personal |= _personal(payload)
    found.codes = set(table_codes(connection))
    version, _tables = schema.state(connection)
    found.facts = {"schema_version": version, "rows": row_counts(connection)}
    past = past_problems(connection, ended_after=now_ms - _PAST_MS)[-_PAST_PROBLEMS:]
    found.past = [each.model_dump(exclude={"id"}) for each in past]
    checked = audit.check(connection)
    found.audit = {
        "entries": checked.entries,
        "head": checked.head,
        "broken": None if checked.broken is None else asdict(checked.broken),
        "last": [audit.to_json(each) for each in audit.latest(connection, _AUDIT_ENTRIES)],
    }


def _personal(payload: str | bytes) -> set[str]:
    try:
        return personal_of(json.loads(payload)) if payload else set()
    except (ValueError, RecursionError):
        return set()


def _files(data_dir: Path) -> list[Answer]:
    found: list[Answer] = []
    for path in sorted(_walk(data_dir)):
        try:
            stat = path.stat()
        except OSError:
            continue
        found.append(
            {
                "name": path.relative_to(data_dir).as_posix(),
                "bytes": stat.st_size,
                "mode": f"{stat.st_mode & 0o7777:04o}",
                "changed_at": to_iso(int(stat.st_mtime * 1000)),
            }
        )
    return found


def _walk(folder: Path) -> Iterable[Path]:
    try:
        yield from (path for path in folder.rglob("*") if path.is_file())
    except OSError:
        return


def _readme(parts: Iterable[Part], now_ms: int) -> str:
    lines = [
        _("Support file of tillbridge, made at {time}.").format(time=to_iso(now_ms)),
        "",
        _("Removed everywhere: secrets, tokens, passwords and keys ([secret]), and"),
        _("customer data ([personal]). Orders and menus are not included."),
        _("Look through it before you send it: all of it is plain text."),
        "",
        *(f"{part.name:<20}{_WHAT.get(part.name, '')}" for part in parts),
    ]
    return "\n".join(lines) + "\n"


_WHAT: Mapping[str, str] = {
    "versions.json": _("versions of the program, the system and all installed libraries"),
    "configuration.json": _("the settings, without secrets and most options of adapters"),
    "status.json": _("the answer of `tillbridge status --json`"),
    "doctor.json": _("the answer of `tillbridge doctor --json`"),
    "problems.json": _("open problems, and those of the last 30 days"),
    "adapters.json": _("the installed adapters, and the results of their checks"),
    "ledger.json": _("the size of the database, and the version of its schema"),
    "audit.json": _("recent activity, and whether the activity log is complete"),
    "files.json": _("names and sizes of the files in the data folder"),
    "log.jsonl": _("the last lines of the log"),
}


_FIRST_LINES = 3
_WIDEST = 100
