"""Importing libraries without what they would pick up and we have no use for."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


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


@contextmanager
def without_certificates() -> Iterator[None]:
    """Let imports in the body find no certificate authorities.

    aiohttp reads all of the system's while it is imported, into a context of its own. Calls go
    out with a context of ours (`service.transport`); one that did not would trust nobody.
    """
    before = {name: os.environ.get(name) for name in _CERTIFICATES}
    os.environ.update(dict.fromkeys(_CERTIFICATES, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
