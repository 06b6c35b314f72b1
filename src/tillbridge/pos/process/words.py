"""What a program writes besides answers, as log events: its stderr, and what is no message.

A program that writes without end fills no log: so many lines in ten seconds, the rest is counted.
"""

import threading
import time

from pydantic import ValidationError

from tillbridge.core.log import get_logger

_WINDOW_S = 10.0
_MOST = 40


class Words:
    """The log of one program; the store stands in each line."""

    def __init__(self, store: str) -> None:
        self.place = {"store": store, "adapter": "process"}
        self._lock = threading.Lock()
        self._since = time.monotonic()
        self._count = 0
        self._left_out = 0
        self._told: set[str] = set()

    def fresh(self) -> None:
        """Take note that the program is started anew: what was told once may be told again."""
        with self._lock:
            self._told.clear()

    def said(self, text: str) -> None:
        """Log a line of its stderr."""
        with self._lock:
            now = time.monotonic()
            left_out = 0
            if now - self._since > _WINDOW_S:
                left_out, self._left_out = self._left_out, 0
                self._since, self._count = now, 0
            self._count += 1
            if self._count > _MOST:
                self._left_out += 1
                return
        if left_out:
            get_logger().warning("adapter.said_more", **self.place, lines=left_out)
        get_logger().info("adapter.said", **self.place, text=text)

    def rubbish(self, length: int) -> None:
        """Log that a line is no message: once for each start, and never what it says."""
        if self._first("rubbish"):
            get_logger().warning("adapter.rubbish", **self.place, bytes=length)

    def stray(self) -> None:
        """Log that something was answered that nobody asks (any more)."""
        if self._first("stray"):
            get_logger().warning("adapter.stray_answer", **self.place)

    def odd(self, kind: str, failure: ValidationError) -> None:
        """Log that a message is not as it must be; its values are not told."""
        error = failure.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, error["loc"]))
        if self._first(f"odd {kind} {place}"):
            get_logger().warning(
                "adapter.odd_message", **self.place, kind=kind, field=place, problem=error["msg"]
            )

    def _first(self, what: str) -> bool:
        with self._lock:
            if what in self._told or len(self._told) > _MOST:
                return False
            self._told.add(what)
            return True
