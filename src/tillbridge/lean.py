"""Keeping the daemon small: it shares a cheap machine with a till (decision 10)."""

import ctypes
import gc
import sys

_M_ARENA_MAX = -8  # malloc.h
_USUAL = gc.get_threshold()
# Half of what the collector costs while starting, and no more memory in the end.
_WHILE_STARTING = (10_000, 1_000)


def starting() -> None:
    """Let the collector look less often: nearly all that starting makes stays."""
    gc.set_threshold(*_WHILE_STARTING)


def spare_arenas() -> None:
    """Let the C library keep one heap for all threads; ours wait far more than they allocate."""
    if libc := _glibc():
        libc.mallopt(_M_ARENA_MAX, 1)


def started() -> None:
    """Let the collector pass over all that starting has made: it lives as long as the bridge."""
    gc.freeze()
    gc.set_threshold(*_USUAL)


def ended() -> None:
    """Let go of what a life that has ended leaves behind; another one follows in this process."""
    gc.unfreeze()
    gc.collect()
    give_back()


def give_back() -> None:
    """Return to the system what only the first work took."""
    if libc := _glibc():
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    # musl has neither.
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None
