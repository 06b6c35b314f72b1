"""Keeps Python's garbage collector out of whole menus.

A menu of 200,000 items is a million objects without a single cycle. Walking through them, the
collector would hold the interpreter, and with it the event loop, for a third of a second, again
and again while the menu grows. So it pauses while a whole menu is built and compared, and passes
over a large one from then on: reference counts free it all the same.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 5_000  # items; walking through fewer takes no time that anybody notices

_pauses = 0


@contextmanager
def gc_paused(*, when: bool = True) -> Iterator[None]:
    """Pause the collector."""
    global _pauses  # noqa: PLW0603 -- there is one collector in a process
    if not when:
        yield
        return
    _pauses += 1
    gc.disable()
    try:
        yield
    finally:
        _pauses -= 1
        if not _pauses:
            gc.enable()


def pass_over(items: int) -> None:
    """Let the collector pass over what is there now, if that is a large menu.

    It holds until `unfreeze`: whole menus are read once a day.
    """
    if items >= LARGE:
        gc.freeze()


def unfreeze() -> None:
    """Collect what a run that is over has left; another one begins in this process."""
    gc.unfreeze()
    gc.collect()
