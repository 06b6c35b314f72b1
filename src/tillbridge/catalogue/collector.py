"""Keeps Python's garbage collector out of whole menus.

A menu of 200,000 items is a million objects without a single cycle. Walking through them, the
collector would hold the interpreter, and with it the event loop, for a third of a second, again
and again while the menu grows. So it rests while a whole menu is built and compared, and then
leaves alone what was built; reference counts free it all the same.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_resting = 0


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Let the collector rest; afterwards what is there now is left out of its rounds."""
    global _resting  # noqa: PLW0603 -- there is one collector in a process
    _resting += 1
    gc.disable()
    try:
        yield
    finally:
        _resting -= 1
        if not _resting:
            gc.freeze()
            gc.enable()


def collect_again() -> None:
    """Put what was left out back in: the menu has been dealt with."""
    if not _resting:
        gc.unfreeze()
