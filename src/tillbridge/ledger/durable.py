"""Files that survive a power cut: whole as they were, or whole as they are to be."""

import os
from pathlib import Path


def write_durably(path: Path, content: bytes) -> None:
    """Put `content` in place of the file, readable by its owner only. Raises OSError."""
    beside = path.with_name(f"{path.name}.new")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in the folder durable, where the system has a way to."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
