"""Checks of what lies around an adapter in its source checkout: README, sample, cases."""

import re
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tillbridge.adapter import Adapter
from tillbridge.adapter.conformance import (
    CannotDo,
    Case,
    CheckResult,
    Outcome,
    Violation,
    case_folders,
    run_case,
)

_CANNOT = re.compile(r"^#+ .*\bcannot\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """Something that lies around an adapter: `look` returns what it saw, or raises as a check."""

    name: str
    title: str
    look: Callable[[Adapter, Path, Sequence[str]], str]

    def check(
        self, adapter: Adapter, root: Path | None, told: Sequence[str] | None = None
    ) -> CheckResult:
        """Look at it; `root` is None where only the package is there.

        `told` are the options that a README must tell; by itself all.
        """
        options = tuple(adapter.options.model_fields if told is None else told)
        return _result(self, adapter, root, options)


def sample_options(root: Path) -> dict[str, Any]:
    """Return the options in sample.toml: the first [stores.NAME.pos] or [stores.NAME.orders].

    Raises Violation.
    """
    path = root / "sample.toml"
    try:
        stores = tomllib.loads(path.read_text("utf-8")).get("stores", {})
    except (OSError, tomllib.TOMLDecodeError) as failure:
        raise Violation(
            f"sample.toml: {failure}", fix="Write one that a restaurant can start from."
        ) from failure
    for store in stores.values():
        for table in ("pos", "orders"):
            if "adapter" in store.get(table, {}):
                return {key: value for key, value in store[table].items() if key != "adapter"}
    raise Violation(
        "sample.toml has no [stores.NAME.pos] with an adapter.",
        fix="Write the tables that a restaurant copies into bridge.toml.",
    )


def _result(
    document: Document, adapter: Adapter, root: Path | None, options: Sequence[str]
) -> CheckResult:
    began = time.monotonic()

    def result(outcome: Outcome, text: str, fix: str = "") -> CheckResult:
        took_ms = round((time.monotonic() - began) * 1000)
        return CheckResult(document.name, document.title, outcome, text, fix, took_ms)

    if root is None:
        return result(Outcome.NOT_TRIED, "There is no source checkout of it here.")
    try:
        return result(Outcome.PASSED, document.look(adapter, root, options))
    except CannotDo as reason:
        return result(Outcome.NOT_TRIED, reason.reason)
    except Violation as violation:
        return result(Outcome.FAILED, violation.text, violation.fix)


def _readme(_adapter: Adapter, root: Path, options: Sequence[str]) -> str:
    path = root / "README.md"
    if not path.is_file():
        raise Violation("There is no README.md.", fix="Say what it reads, with which options.")
    text = path.read_text("utf-8")
    missing = [name for name in options if f"`{name}`" not in text]
    if missing:
        raise Violation(
            f"README.md does not tell the option {missing[0]}.",
            fix="Name each option as `option`, and say what it does.",
        )
    if not _CANNOT.search(text):
        raise Violation(
            "README.md does not say what the adapter cannot do.",
            fix='Add a section with "cannot" in its heading.',
        )
    return f"{len(options)} options"


def _sample(adapter: Adapter, root: Path, _options: Sequence[str]) -> str:
    said = sample_options(root)
    try:
        adapter.options.model_validate(said)
    except ValidationError as failure:
        first = failure.errors(include_url=False, include_context=False)[0]
        raise Violation(
            f"sample.toml: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}",
            fix="Correct the option, or the sample.",
        ) from failure
    return f"{len(said)} options"


def _cases(adapter: Adapter, root: Path, _options: Sequence[str]) -> str:
    folders = case_folders(root / "tests/cases")
    if not folders:
        raise CannotDo("There is no folder in tests/cases/.")
    for folder in folders:
        try:
            difference = run_case(adapter, Case.of(folder))
        except ValueError as failure:
            raise Violation(str(failure), fix="Correct case.toml.") from failure
        if difference:
            raise Violation(
                f"{folder.name} is read differently:\n{difference}",
                fix="Correct the adapter; or, if the reading is right, expected.json.",
            )
    return f"{len(folders)} cases"


DOCUMENTS_TO_CHECK = (
    Document("readme", "README.md tells options and limits", _readme),
    Document("sample", "sample.toml is right", _sample),
    Document("cases", "case folders are read as expected", _cases),
)
