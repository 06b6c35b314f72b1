"""Structured logs: events with dotted names and fields, JSON or for a console, never a secret.

Lines go to stderr, since stdout is what a command answers; where systemd's journal reads them they
begin with their priority. A line has `event`, `level` and `at`
(UTC with milliseconds), then its fields; lines of libraries come the same way, with `logger`.
`tillbridge.core.redaction` masks what must not be shown, tracebacks included.

A daemon also stores the last lines on disk, as JSON whatever stderr shows, so that a page, a
command or a bundle can show them later: numbered files (`log/00000007.jsonl` in the data folder),
the oldest of which goes when all of them together are too large. On disk and not in memory: a
bridge that died can still be asked what happened, and one that runs is not heavier for it
(decision 28).
"""

import contextlib
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TextIO, cast

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from tillbridge.core.i18n import N_, NOBODY, _, reading
from tillbridge.core.redaction import learn_secret, masked_value
from tillbridge.core.started import goes_to_journal, with_priority
from tillbridge.model.instant import to_iso

__all__ = ["configure", "get_logger", "learn_secret"]

Format = Literal["auto", "json", "console"]
Level = Literal["debug", "info", "warning", "error"]

# Control characters from an export or an order would let a line forge others on a terminal.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def get_logger() -> FilteringBoundLogger:
    """Return the logger: `log.info("order.written", order=...)`."""
    return cast("FilteringBoundLogger", structlog.get_logger())


def configure(
    log_format: Format = "auto",
    level: Level = "info",
    *,
    stream: TextIO | None = None,
    on_line: Callable[[str], None] | None = None,
    headline_first: bool = False,
) -> None:
    """Set up logs for this process, those of libraries and of threads that die included.

    `on_line` is given each line as JSON, with its secrets masked. With `headline_first` a terminal
    shows nothing before the line that says where the bridge's page is, or an error.
    """
    target = stream or sys.stderr
    console = log_format == "console" or (log_format == "auto" and _is_terminal(target))
    output = _Output(target, console=console, on_line=on_line, headline_first=headline_first)
    processors: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,  # a traceback without the values of variables
    ]
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *processors],
        logger_factory=lambda *_: output,
        cache_logger_on_first_use=False,
    )
    logging.getLogger().handlers = [_Handler(processors, output)]
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # a line for every change
    logging.captureWarnings(capture=True)
    set_level(level)
    threading.excepthook = _thread_died
    sys.excepthook = _program_died


def set_level(level: Level) -> None:
    """Write what is at least this severe from now on; loggers that are there already obey too."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))
    # Libraries log too much at info; what they warn of is always written.
    logging.getLogger().setLevel(
        logging.DEBUG if number <= logging.DEBUG else max(number, logging.WARNING)
    )


# What a person at a terminal reads instead of the event.
_HEADLINES = {
    "bridge.setting_up": N_(
        "Open {page} in a browser to set up the bridge. Data folder: {data}. Press Ctrl-C to stop."
    ),
    "bridge.ready": N_("The bridge is running. Its page is {page}. Press Ctrl-C to stop."),
}


class _Output:
    """Masks an event, and writes it as a line: to the stream, and as JSON to `on_line`."""

    def __init__(
        self,
        stream: TextIO,
        *,
        console: bool,
        on_line: Callable[[str], None] | None,
        headline_first: bool,
    ) -> None:
        self._stream = stream
        self._is_terminal = console and _is_terminal(stream)
        # Lines that wait for the headline.
        self._held: list[str] | None = [] if headline_first and self._is_terminal else None
        self._on_line = on_line
        self._to_journal = goes_to_journal(stream)
        # ASCII, because the stream's encoding is the system's affair.
        self._as_json = structlog.processors.JSONRenderer(default=str)
        self._for_people: Processor | None = None
        if console:
            self._for_people = structlog.dev.ConsoleRenderer(
                colors=self._is_terminal,
                exception_formatter=structlog.dev.plain_traceback,
                timestamp_key="at",
                sort_keys=False,
            )

    def write(self, /, **event: Any) -> None:  # noqa: ANN401 -- fields of any type
        """Write one line. One that cannot be written (closed pipe, full disk) stops nothing."""
        level = event.pop("level")
        with reading(NOBODY):  # the log is the same in every language
            shown = masked_value(event)
        at = to_iso(time.time_ns() // 1_000_000)
        shown = {"event": shown.pop("event", ""), "level": level, "at": at, **shown}
        line = str(self._as_json(None, level, shown))
        if self._on_line is not None:
            self._on_line(line)
        if self._for_people is not None:
            safe = {
                name: _CONTROL.sub(lambda found: ascii(found[0])[1:-1], value)
                if isinstance(value, str) and name != "exception"
                else value
                for name, value in shown.items()
            }
            if self._is_terminal:
                safe["at"] = time.strftime("%H:%M:%S")  # a person's own time
            line = str(self._for_people(None, level, safe))
            if self._is_terminal:
                line = self._placed(shown, line)
        if not line:
            return
        if self._to_journal:
            line = with_priority(level, line)
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()

    def _placed(self, event: Mapping[str, Any], line: str) -> str:
        """Return what a terminal shows now: the line, after those that waited; "" for none."""
        headline = str(_(_HEADLINES.get(event["event"], "")).format(**event))
        if self._held is None:
            return headline or line
        if not headline:
            self._held.append(line)
            if event["level"] not in {"error", "critical"}:
                return ""
        held, self._held = self._held, None
        return "\n".join([headline, *held] if headline else held)

    debug = info = warning = error = critical = fatal = exception = write


class _Handler(logging.Handler):
    """Sends the lines of libraries to the same output."""

    def __init__(self, processors: list[Processor], output: _Output) -> None:
        super().__init__()
        self._processors = processors
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event: Any = {"event": record.getMessage(), "logger": record.name}
            if record.exc_info:
                event["exc_info"] = record.exc_info
            for processor in self._processors:
                event = processor(None, record.levelname.lower(), event)
            self._output.write(**event)
        except Exception:  # noqa: BLE001 -- a library's malformed line must not break its caller
            self.handleError(record)


def _thread_died(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else ""
    get_logger().error("thread.died", thread=name, exc_info=args.exc_value)


def _program_died(
    kind: type[BaseException], failure: BaseException, _trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    get_logger().critical("program.died", exc_info=failure)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


# -- the last lines on disk

LOG_FOLDER = "log"
FILES = 8  # about as many; the oldest goes whole
LONGEST_LINE = 32_768

_SMALLEST_FILE = 16_384
_WAITING = 64  # lines from before the data folder is made


class LogFiles:
    """Appends lines to the last file in `folder`, and begins a new one when it is full.

    `max_bytes` bounds all files together (roughly: a file is forgotten whole); 0 keeps nothing. A
    disk that refuses costs the line and nothing else. Safe to use from any thread.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._file_bytes = max(max_bytes // FILES, _SMALLEST_FILE)
        self._lock = threading.Lock()
        self._file = -1
        self._size = 0
        self._waiting: list[bytes] = []

    def write(self, line: str) -> None:
        """Write one line (without its end), as JSON in ASCII."""
        if not self._max_bytes:
            return
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._waiting.append(line.encode("ascii", "backslashreplace") + b"\n")
            del self._waiting[:-_WAITING]
            # The folder of the ledger is made by the ledger, with its own rights.
            if self._file < 0 and not self._folder.parent.is_dir():
                return
            if self._file < 0 or self._size >= self._file_bytes:
                self._open()
            data = b"".join(self._waiting)
            # Taken for written whatever comes of it: a full disk is not asked for a line twice.
            self._waiting.clear()
            written = os.write(self._file, data)
            self._size += written
            if written < len(data):
                self._close()  # the next line begins a line of its own

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        with self._lock:
            self._close()

    def _open(self) -> None:
        self._close()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        files = log_files(self._folder)
        last = files[-1] if files else self._folder / file_name(1)
        if files and last.stat().st_size >= self._file_bytes:
            last = self._folder / file_name(file_number(last) + 1)
        self._forget(files)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._file = os.open(last, flags | getattr(os, "O_BINARY", 0), 0o600)
        self._size = os.fstat(self._file).st_size
        if self._size and _torn(self._file, self._size):
            self._size += os.write(self._file, b"\n")

    def _forget(self, files: list[Path]) -> None:
        """Remove the oldest files, so that a full one more still fits."""
        sizes = [each.stat().st_size for each in files]
        limit = self._max_bytes - self._file_bytes
        for place, path in enumerate(files[:-1]):
            if sum(sizes[place:]) <= limit:
                return
            with contextlib.suppress(OSError):  # Windows keeps what somebody reads just now
                path.unlink()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def file_name(number: int) -> str:
    """Return the name of the file with this number."""
    return f"{number:08d}.jsonl"


def file_number(path: Path) -> int:
    """Return the number of a log file."""
    return int(path.stem)


def log_files(folder: Path) -> list[Path]:
    """Return the files of the log, the oldest first; none where the folder is not there."""
    try:
        found = [path for path in folder.iterdir() if _is_log_file(path)]
    except OSError:
        return []
    return sorted(found, key=file_number)


def backwards(path: Path, block: int = 65_536) -> Iterator[bytes]:
    """Return a file's lines, the last first, without reading all of it. Raises OSError."""
    with path.open("rb") as file:
        place = file.seek(0, os.SEEK_END)
        begun = b""
        while place:
            step = min(block, place)
            place -= step
            file.seek(place)
            begun, *whole = (file.read(step) + begun).split(b"\n")
            yield from reversed(whole)
        yield begun


def _is_log_file(path: Path) -> bool:
    return path.suffix == ".jsonl" and path.stem.isascii() and path.stem.isdecimal()


def _torn(file: int, size: int) -> bool:
    """Whether the last line was cut off by a crash."""
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1) != b"\n"
