"""Importing a library without the optional companion it would pick up."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(name: str) -> Iterator[None]:
    """Let imports in the body find no module `name`, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # the documented way to make an import fail
    try:
        yield
    finally:
        del sys.modules[name]
