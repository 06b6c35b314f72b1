"""Goldens: what the program answered, written so that two runs are the same text.

`compare` holds a text against its file in `tests/goldens`; `make goldens` (which is
`pytest --renew-goldens`) writes it anew.
"""

import contextlib
import difflib
import io
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tillbridge import cli

GOLDENS = Path(__file__).resolve().parents[1] / "goldens"
RENEW = "--renew-goldens"
_ID = re.compile(r"\b([a-z]{2,4})_[0-9a-f]{12,}\b")
_PATTERNS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<day>"),
    (re.compile(r"\b1[78]\d{11}\b"), "<ms>"),
    # In the evening two hours later is another day, and has its date before it.
    (re.compile(r"\b(\d\d [A-Z][a-z]{2} (\d{4} )?)?[0-2]\d:[0-5]\d\b(?!\")"), "<clock>"),
    (re.compile(r"127\.0\.0\.1:\d{4,5}"), "127.0.0.1:<port>"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "<hash>"),
    (re.compile(r"\b\d+(\.\d+)?\s?(ms|s|seconds?|minutes?|h)\b"), "<span>"),
    (re.compile(r"\beyJ[\w.-]{30,}"), "<token>"),
    (re.compile(r"\bRW[\w+/=]{40,}"), "<key>"),
    (re.compile(r"\b(pid |PID )\d+"), r"\1<pid>"),
)
_VARIABLE = re.compile(r"(_ms|_s|_bytes|^age|^pid|^ms|^size|^took|_percent)$")


def compare(texts: Mapping[str, str], *, renew: bool) -> None:
    """Hold texts against their golden files, or write those files."""
    differences: list[str] = []
    for name, text in texts.items():
        path = GOLDENS / name
        if renew:
            path.write_text(text.rstrip("\n") + "\n", "utf-8")
        was, now = path.read_text("utf-8").splitlines(), text.rstrip("\n").splitlines()
        differences += difflib.unified_diff(was, now, f"goldens/{name}", "now", lineterm="", n=2)
    if differences:
        pytest.fail("\n".join([*differences, "If this is meant: make goldens"]), pytrace=False)


def invoke(*arguments: str) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code, output and error output."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["tillbridge", *arguments]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.argv = before
    assert isinstance(code, int)
    return int(code), out.getvalue(), err.getvalue()


class Normaliser:
    """Replaces what differs from run to run; an id keeps its number for the whole of a run."""

    def __init__(self, **names: str) -> None:
        self._names = dict(
            sorted(((v, f"<{k}>") for k, v in names.items()), key=lambda n: -len(n[0]))
        )
        self._ids: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def text(self, text: str) -> str:
        """Return a text in which nothing differs from run to run."""
        for value, name in self._names.items():
            text = text.replace(value, name)
        for pattern, name in _PATTERNS:
            text = pattern.sub(name, text)
        return _ID.sub(lambda found: self._id(found[0], found[1]), text)

    def value(self, value: Any, key: str = "") -> Any:  # noqa: ANN401 -- any JSON value
        """Return a JSON value in which nothing differs from run to run."""
        match value:
            case dict():
                return {
                    self.text(str(name)): self.value(each, str(name))
                    for name, each in value.items()
                }
            case list() | tuple():
                return [self.value(each, key) for each in value]
            case bool() | None:
                return value
            case int() | float():
                variable = _VARIABLE.search(key) or isinstance(value, float) or abs(value) > 10**12
                return "<number>" if variable else value
            case _:
                return self.text(str(value))

    def _id(self, found: str, kind: str) -> str:
        if found not in self._ids:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._ids[found] = f"<{kind} {self._counts[kind]}>"
        return self._ids[found]


def as_json(value: Mapping[str, Any] | list[Any]) -> str:
    """Return JSON as goldens have it."""
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=False)
