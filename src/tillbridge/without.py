"""Importing libraries without what they would pick up and we have no use for."""

import mimetypes
import os
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


@contextmanager
def without_certificates() -> Iterator[None]:
    """Let imports in the body find no certificate authorities.

    aiohttp reads all of the system's while it is imported, into a context of its own. Calls go
    out with a context of ours (`service.transport`); one that did not would trust nobody.
    """
    with _variables(SSL_CERT_FILE=os.devnull, SSL_CERT_DIR=os.devnull):
        yield


@contextmanager
def without_file_types() -> Iterator[None]:
    """Let imports in the body read none of the system's tables of file types.

    aiohttp does for the files that it serves. Python knows those of the page itself.
    """
    before, mimetypes.knownfiles = mimetypes.knownfiles, []
    try:
        yield
    finally:
        mimetypes.knownfiles = before


@contextmanager
def without_plugins() -> Iterator[None]:
    """Let pydantic look for no plug-ins while it makes the validators that the body needs.

    It would read what every installed package registers, and that takes longer than the rest.
    """
    with _variables(PYDANTIC_DISABLE_PLUGINS="__all__"):
        yield


@contextmanager
def _variables(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
