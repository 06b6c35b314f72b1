"""`control.json`: where commands find the running bridge, and the token that proves the user."""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

CONTROL_FILE = "control.json"


def new_token() -> str:
    """Return a token for this life of the daemon."""
    return secrets.token_urlsafe(32)


@contextlib.contextmanager
def announced(data_dir: Path, *, url: str, token: str) -> Iterator[None]:
    """Keep the file while the body runs. Only this user can read it; it appears whole."""
    path = data_dir / CONTROL_FILE
    fresh = path.with_name(f".{CONTROL_FILE}.new")
    fresh.unlink(missing_ok=True)
    text = json.dumps({"url": url, "token": token, "pid": os.getpid()})
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
