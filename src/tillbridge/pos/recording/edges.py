"""What an adapter reads, as far as it can be seen from outside: files, addresses, secrets."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from tillbridge.adapter import Adapter, NamesFiles
from tillbridge.config import SecretSource
from tillbridge.config.secrets import resolve_secret
from tillbridge.core.redaction import MASK, masked_field

# Programs are the vendor's, not the till's.
_NO_EDGE = {"command", "cwd", "env"}


@dataclass(slots=True)
class Edges:
    """`files` are (where it lies, where in the case); `options` what stands in case.toml."""

    options: dict[str, Any]
    files: dict[Path, Path] = field(default_factory=dict)
    folders: dict[Path, Path] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)

    def name_files(self, pos: object, base_dir: Path) -> None:
        """Add the files that the adapter names; those in a folder of an option stay in it."""
        if not isinstance(pos, NamesFiles):
            return
        for path in (*pos.catalogue_files(), *pos.availability_files(), *pos.table_files()):
            if path.is_file() and path not in self.files:
                self.files[path] = self._place(path, base_dir)

    def add(self, path: Path, base_dir: Path) -> None:
        """Add a file, or the files of a folder, that a person names."""
        for each in sorted(path.iterdir()) if path.is_dir() else [path]:
            if each.is_file():
                self.files[each] = self._place(each, base_dir)

    def _place(self, path: Path, base_dir: Path) -> Path:
        for folder, place in self.folders.items():
            if path.is_relative_to(folder):
                return place / path.relative_to(folder)
        return place_in_case(path, base_dir)


def edges_of(adapter: Adapter, options: Mapping[str, Any], base_dir: Path) -> Edges:
    """Look at an adapter's options. Raises ValidationError, ConfigError (a secret is not there)."""
    model = adapter.options.model_validate(dict(options))
    edges = Edges(dict(options))
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name == "env":
            edges.secrets += [os.environ[each] for each in value or () if os.environ.get(each)]
        elif isinstance(value, SecretStr | SecretSource):
            secret = resolve_secret(value, key=name, base_dir=base_dir).get_secret_value()
            edges.secrets.append(secret)
            edges.options[name] = secret  # another word stands there once all is redacted
        elif name not in _NO_EDGE:
            found = _looked_at(edges, name, value, base_dir)
            if name in options:
                edges.options[name] = found
    edges.options = {name: value for name, value in edges.options.items() if name not in _NO_EDGE}
    return edges


def place_in_case(path: Path, base_dir: Path) -> Path:
    """Return where in a case something lies: where it did, or in `files/`."""
    full, base = path.resolve(), base_dir.resolve()
    return full.relative_to(base) if full.is_relative_to(base) else Path("files") / path.name


def _looked_at(edges: Edges, name: str, value: Any, base_dir: Path) -> Any:  # noqa: ANN401 -- an option of any kind
    """Take note of what an option says, and return it as it stands in the case."""
    if isinstance(value, Mapping):
        return {key: _looked_at(edges, str(key), part, base_dir) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_looked_at(edges, name, part, base_dir) for part in value]
    if not isinstance(value, str | Path):
        return value
    text = str(value)
    if isinstance(value, str) and masked_field(name, value) == MASK:
        edges.secrets.append(value)
    parts = urlsplit(text)
    if parts.scheme in {"http", "https"} and parts.netloc:
        edges.secrets += [each for each in (parts.username, parts.password) if each]
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in edges.origins:
            edges.origins.append(origin)
        return text
    path = base_dir / text
    if text and path.is_file():
        edges.files[path] = place_in_case(path, base_dir)
        return edges.files[path].as_posix()
    if text and path.is_dir():
        edges.folders[path] = place_in_case(path, base_dir)
        return edges.folders[path].as_posix()
    return text


def aliases(origins: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Return each address with the one that stands for it in a case: a host's name tells a lot."""
    for number, origin in enumerate(origins, 1):
        yield origin, f"http://till{number}.example.net"
