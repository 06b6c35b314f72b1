"""Finds what a path means, and makes paths: every part in braces is one segment, escaped."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote, unquote, urlencode

_PART = re.compile(r"\{([a-z_]+)\}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What was found, and the parts of its path, decoded."""

    what: T
    params: Mapping[str, str]


class Routes(Generic[T]):
    """Paths and what they mean. Raises ValueError for a path that is there twice."""

    def __init__(self, routes: Iterable[tuple[str, T]]) -> None:
        self._plain: dict[str, T] = {}
        self._parts: list[tuple[re.Pattern[str], T]] = []
        seen: set[str] = set()
        for path, what in routes:
            shape = _PART.sub("{}", path)
            if shape in seen:
                raise ValueError(f"the path {path} is there twice")
            seen.add(shape)
            if "{" not in path:
                self._plain[path] = what
                continue
            pattern = "".join(
                f"(?P<{part}>[^/]+)" if place % 2 else re.escape(part)
                for place, part in enumerate(_PART.split(path))
            )
            self._parts.append((re.compile(pattern), what))

    def find(self, raw_path: str) -> Found[T] | None:
        """Return what this path (as sent, still escaped) means; None for nothing."""
        if (plain := self._plain.get(raw_path)) is not None:
            return Found(plain, {})
        for pattern, what in self._parts:
            if match := pattern.fullmatch(raw_path):
                return Found(
                    what, {name: unquote(part) for name, part in match.groupdict().items()}
                )
        return None


def path_of(path: str, params: Mapping[str, object], query: Mapping[str, object] = {}) -> str:
    """Return the path with its parts put in. KeyError for a part that is not given."""
    made = _PART.sub(lambda match: quote(str(params[match[1]]), safe="", errors="replace"), path)
    asked = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{made}?{urlencode(asked, errors='replace')}" if asked else made


def parts_of(path: str) -> list[str]:
    """Return the names of the parts in braces."""
    return _PART.findall(path)
