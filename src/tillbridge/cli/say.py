"""What commands print: lines, tables, problems, questions, JSON, and that one is still at it."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from tillbridge.core.errors import ConfigError
from tillbridge.core.formats import local_second
from tillbridge.core.i18n import N_, _, localised
from tillbridge.core.started import goes_to_journal, with_priority
from tillbridge.model.instant import from_iso

_COLOURS = {"ok": "green", "warning": "yellow", "down": "red", "error": "red"}


def line(text: str = "", *, level: str = "") -> None:
    """Say one line of the answer, at once."""
    typer.echo(_coloured(str(text), level, sys.stdout.isatty()))
    sys.stdout.flush()


def document(answer: object) -> None:
    """Say the answer as JSON."""
    answer = localised(answer)
    text = json.dumps(answer, indent=2, ensure_ascii=not _speaks_unicode(), default=str)
    try:
        text.encode()
    except UnicodeEncodeError:  # halves of characters, as JSON allows them and no terminal does
        text = json.dumps(answer, indent=2, default=str)
    typer.echo(text)


def trouble(text: str, fix: str = "") -> None:
    """Say what went wrong, and on a line of its own what to do."""
    text, fix = str(text), str(fix)
    if goes_to_journal(sys.stderr):
        text, fix = with_priority("error", text), fix and with_priority("error", fix)
    typer.echo(_coloured(text, "error", sys.stderr.isatty()), err=True)
    if fix:
        typer.echo(fix, err=True)


def failed(text: str, fix: str, code: int, *, as_json: bool) -> None:
    """Say why a command failed and what to do; where JSON was asked for, as JSON too."""
    if as_json:
        document({"ok": False, "error": {"text": text, "fix": fix, "exit_code": int(code)}})
    trouble(text, fix)


def aside(text: str = "") -> None:
    """Say one line that is no part of the answer: on stderr, at once."""
    typer.echo(str(text), err=True)


# -- answers as lines

Arguments = Mapping[str, Any]
# A line of an answer: its text, and its level where it has one.
Lines = Iterable[str | tuple[str, str]]
# Returns an answer as people read it; it is given the arguments too.
Show = Callable[[Any, Arguments], Lines]
Column = tuple[str, str | Callable[[Any], object]]  # a head, and a key of a row or what reads it


def lines(texts: Lines) -> None:
    """Say the lines of an answer; what could steer a terminal is taken out of them."""
    for each in texts:
        text, level = (each, "") if isinstance(each, str) else each
        line(clean(text), level=level)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Lines:
    """Return rows in aligned columns; the last column may be of any width."""
    cells = [[str(head) for head in heads], *([clean(cell) for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(heads))]
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(padded).rstrip()


def rows(columns: Sequence[Column], items: Iterable[Mapping[str, Any]]) -> Lines:
    """Return items in aligned columns."""
    return table(
        [head for head, _cell in columns],
        [
            [str(each[cell] if isinstance(cell, str) else cell(each)) for _head, cell in columns]
            for each in items
        ],
    )


def pairs(texts: Iterable[tuple[str, object]], *, least: int, indent: str = "") -> Lines:
    """Return names and texts, a line each; the texts stand below each other, from `least` on."""
    found = [(str(name), str(text)) for name, text in texts]
    width = max([least, *(len(name) + 1 for name, _text in found)])
    for name, text in found:
        yield f"{indent}{name.ljust(width)}{text}"


def sentence(answer: Mapping[str, Any], _given: Arguments) -> Lines:
    """Return what an act answered: its sentence, and what to do next."""
    yield answer.get("text") or _("Done.")
    if fix := answer.get("fix"):
        yield fix
    elif answer.get("ok") is False:
        yield _("See what is wrong: tillbridge status")


def clean(text: object) -> str:
    """Return text from outside without the control characters that could steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def local_time(at: int | str | None) -> str:
    """Return an instant (ms or ISO 8601) in the reader's time zone; "" for none."""
    if at is None or at == "":
        return ""
    ms = from_iso(at) if isinstance(at, str) else at
    return local_second(ms)


def _coloured(text: str, level: str, terminal: bool) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if not level or not terminal or plain:
        return text
    return typer.style(text, fg=_COLOURS.get(level), bold=level != "ok")


def _speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def confirm(effects: Iterable[str], *, question: str = N_("Continue?"), mark: str = "- ") -> None:
    """Let a person agree to effects; ends with 1 where they do not.

    Without effects nobody is asked. Raises ConfigError without a terminal.
    """
    effects = tuple(effects)
    if not effects:
        return
    for effect in effects:
        typer.echo(mark + clean(effect), err=True)
    if not sys.stdin.isatty():
        raise ConfigError(
            _("This command asks before it acts, but there is no terminal."),
            fix=_("Add --yes to run it without being asked."),
        )
    if not typer.confirm(str(_(question)), err=True):
        raise typer.Exit(1)


AFTER_S = 1.0


# What is under way, how many are done, and of how many (0: nobody knows).
HowFar = Callable[[], tuple[str, int, int]]


@contextmanager
def progress(
    what: Callable[[], str] = lambda: _("Still working"), how_far: HowFar | None = None
) -> Iterator[None]:
    """Say on stderr that it takes more than a second, and what is under way.

    On a terminal every second how long it has taken, or a bar where `how_far` says how far it is;
    elsewhere one line, once.
    """
    over = threading.Event()
    ticking = threading.Thread(
        target=_tick, args=(what, over, how_far), name="progress", daemon=True
    )
    ticking.start()
    try:
        yield
    finally:
        over.set()
        ticking.join()


def _tick(what: Callable[[], str], over: threading.Event, how_far: HowFar | None) -> None:
    began = time.monotonic()
    if over.wait(AFTER_S):
        return
    if not sys.stderr.isatty():
        _write(f"{what()} ...\n")
        return
    if how_far is not None:
        _bar(how_far, over)
        return
    width = 0
    while True:
        seconds = int(time.monotonic() - began)
        shown = str(_("{text}, {seconds} s ...").format(text=what(), seconds=seconds))
        width = max(width, len(shown))
        _write("\r" + shown.ljust(width))
        if over.wait(1.0):
            _write("\r" + " " * width + "\r")
            return


def _bar(how_far: HowFar, over: threading.Event) -> None:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(str(_("Still working")), total=None)
        while not over.wait(0.3):
            text, done, total = how_far()
            bar.update(task, description=clean(text), completed=done, total=total or None)


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # closed: then nobody reads it
        return
