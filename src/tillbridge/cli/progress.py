"""Says that a command is still at it, once it takes more than a second. Always on stderr."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tillbridge.core.i18n import _

AFTER_S = 1.0


@contextmanager
def progress(what: str = "") -> Iterator[None]:
    """Say on a terminal how long it has taken, every second; elsewhere one line, once."""
    over = threading.Event()
    text = what or _("Still working")
    ticking = threading.Thread(target=_tick, args=(text, over), name="progress", daemon=True)
    ticking.start()
    try:
        yield
    finally:
        over.set()
        ticking.join()


def _tick(text: str, over: threading.Event) -> None:
    began = time.monotonic()
    if over.wait(AFTER_S):
        return
    if not sys.stderr.isatty():
        _write(f"{text} ...\n")
        return
    width = 0
    while True:
        shown = _("{text}, {seconds} s ...").format(
            text=text, seconds=int(time.monotonic() - began)
        )
        width = max(width, len(shown))
        _write("\r" + shown.ljust(width))
        if over.wait(1.0):
            _write("\r" + " " * width + "\r")
            return


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # closed: then nobody is there to be told
        return
