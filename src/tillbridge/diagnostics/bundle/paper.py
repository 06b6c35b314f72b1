"""A bundle as a value: its files, what a person sees of them beforehand, and the zip. Pure."""

import io
import json
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_FIRST_LINES = 3
_WIDEST = 100


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a bundle; `text` is fit to be shown to anybody."""

    name: str
    text: str

    @classmethod
    def of_json(cls, name: str, value: object) -> "Part":
        """Return a file with this JSON value in it."""
        return cls(name, json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")

    @property
    def data(self) -> bytes:
        """The file as it is written."""
        return self.text.encode("utf-8", "replace")

    def preview(self) -> dict[str, Any]:
        """Return `name`, `size` in bytes, and the `first` lines."""
        lines = [line for line in self.text.splitlines() if line.strip(" {}[],")]
        first = [_short(line.strip()) for line in lines[:_FIRST_LINES]]
        return {"name": self.name, "size": len(self.data), "first": first}


@dataclass(frozen=True, slots=True)
class Bundle:
    """All files of a bundle, made at `made_at` (ms since the epoch)."""

    parts: tuple[Part, ...]
    made_at: int

    @property
    def file_name(self) -> str:
        """Return what the zip is called."""
        return f"tillbridge-support-{self._moment():%Y%m%d-%H%M%S}.zip"

    def preview(self) -> list[dict[str, Any]]:
        """Return what a person sees before it is written."""
        return [part.preview() for part in self.parts]

    def zipped(self) -> bytes:
        """Return the zip file."""
        folder = self.file_name.removesuffix(".zip")
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in self.parts:
                entry = zipfile.ZipInfo(f"{folder}/{part.name}", self._moment().timetuple()[:6])
                entry.external_attr = 0o600 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, part.data)
        return file.getvalue()

    def _moment(self) -> datetime:
        return datetime.fromtimestamp(self.made_at / 1000, UTC)


def _short(line: str) -> str:
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"
