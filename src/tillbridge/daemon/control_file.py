"""`control.json`: where commands find the running bridge, and the token that proves the user."""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from tillbridge.core.errors import BridgeError, reason_of
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.new_files import create_new

log = get_logger()

CONTROL_FILE = "control.json"


def new_token() -> str:
    """Return a token for this life of the daemon."""
    return secrets.token_urlsafe(32)


@contextlib.contextmanager
def announced(data_dir: Path, *, url: str, token: str) -> Iterator[None]:
    """Keep the file while the body runs. Only this user can read it; it appears whole."""
    path = data_dir / CONTROL_FILE
    text = json.dumps({"url": url, "token": token, "pid": os.getpid()})
    try:
        _write(path, text)
    except OSError as failure:
        raise BridgeError(
            _("{path} cannot be written: {detail}.").format(path=path, detail=reason_of(failure)),
            fix=_(
                "Let the bridge's user write to {folder}, free disk space there, or mend the disk;"
                " then start the bridge again."
            ).format(folder=data_dir),
        ) from failure
    try:
        yield
    finally:
        try:
            path.unlink(missing_ok=True)
        except OSError as failure:
            # Commands find out by themselves that nobody answers there.
            log.warning("control.left_behind", file=str(path), detail=reason_of(failure))


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    with os.fdopen(create_new(fresh, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
