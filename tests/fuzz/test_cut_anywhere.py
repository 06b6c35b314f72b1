"""Every parser, its export cut at every byte: what no person approved is pushed within limits.

The limits are written down here once more, by themselves, so that the guard cannot agree with its
own mistakes.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.fuzz.exports import Export, exports, read
from tests.fuzz.targets import work_folder
from tests.support.full_menus import totals_of
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.menu.diff import Diff, diff
from tillbridge.menu.guard import Rules, Source, findings
from tillbridge.model.catalogue import Catalogue
from tillbridge.pos.validation import valid_catalogue

_SAMPLES = 15  # of the places in one export; all of them in the slow lane
_LAST = 30  # bytes, at each of which it is cut: the end of the last line, and the last row


@pytest.fixture
def home() -> Iterator[Path]:
    with work_folder() as folder:
        yield folder


def catalogue_of(export: Export, content: bytes, home: Path) -> Catalogue | None:
    """Return the menu, None where the adapter says that the export cannot be read."""
    found = read(export, content, home).get("catalogue")
    return valid_catalogue(found) if isinstance(found, Catalogue) else None


def is_export_of_a_menu(export: Export, home: Path) -> bool:
    whole = catalogue_of(export, export.content, home)
    return export.adapter != "sql" and whole is not None and bool(whole.items)


def source_of(export: Catalogue) -> Source:
    return Source(export.ends_with_newline, export.facts.encodings)


def ends_a_line(content: bytes) -> bool:
    """Whether the last whole character is the end of a line."""
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin-1"
    return content.decode(encoding, "ignore").endswith(("\n", "\r"))


def excess(accepted: Catalogue, cut: Catalogue, changes: Diff, content: bytes) -> Sequence[str]:
    """Return which limits a push of the cut export would break."""
    removed, known = len(changes.removed), len(accepted.items)
    prices = {
        (key, variant): price
        for key, item in accepted.items.items()
        for variant, price in [
            ("", item.price),
            *((each.external_id, each.price) for each in item.variants),
        ]
    }
    moved = []
    for key, item in cut.items.items():
        for variant, price in [
            ("", item.price),
            *((each.external_id, each.price) for each in item.variants),
        ]:
            before = prices.get((key, variant))
            if before and price != before:
                moved.append((before, price))
    return [
        text
        for text, is_broken in {
            "the menu is emptied": removed >= known and not changes.added,
            "too many removed": removed > max(5, known // 10),
            "something becomes free": any(price == 0 for _before, price in moved),
            "a decimal point slipped": any(
                max(pair) >= 50 * min(pair) for pair in moved if min(pair) > 0
            ),
            "too many are new": len(changes.added) > 20,
            "the last line does not end": accepted.ends_with_newline is True
            and not ends_a_line(content),
        }.items()
        if is_broken
    ]


def check_cuts(export: Export, sizes: Sequence[int], home: Path) -> int:
    """Return how many of the cuts would be pushed without being asked about."""
    accepted = catalogue_of(export, export.content, home)
    assert accepted is not None
    rules = Rules(MenuSettings(), AssumptionSettings(), export.currency)
    passed = 0
    for size in sizes:
        cut = catalogue_of(export, export.content[:size], home)
        if cut is None:
            continue
        changes = diff(accepted, cut)
        totals = totals_of(
            accepted, changes, accepted_from=source_of(accepted), read_from=source_of(cut)
        )
        if changes.needs_push and not findings(changes, totals, rules):
            passed += 1
            wrong = excess(accepted, cut, changes, export.content[:size])
            assert not wrong, (
                f"{export.name}, {size} bytes {export.content[:size][-30:]!r}: {wrong}"
            )
    return passed


def test_a_cut_is_held_or_within_the_limits(home: Path) -> None:
    there = [each for each in exports().values() if is_export_of_a_menu(each, home)]
    assert len(there) >= 25
    passed = 0
    for number, export in enumerate(there):
        length = len(export.content)
        step = max(1, length // _SAMPLES)
        sizes = {*range(number % step, length, step), *range(max(0, length - _LAST), length)}
        passed += check_cuts(export, sorted(sizes), home)
    assert passed > 20, "some cuts at the end of a line are a day's work"


@pytest.mark.slow(reason="cuts at every byte; in short at some of them, and at the last ones")
@pytest.mark.parametrize("name", exports())
def test_a_cut_at_any_byte_is_held_or_within_the_limits(home: Path, name: str) -> None:
    export = exports()[name]
    if is_export_of_a_menu(export, home):
        check_cuts(export, range(len(export.content)), home)
