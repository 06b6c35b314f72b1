"""An export that is cut off at any byte: what a person does not see, no guest may miss."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.folder_till import menu_till
from tests.support.full_menus import totals_of
from tillbridge.adapter import ExportUnreadable
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.config.store import MenuSettings
from tillbridge.menu.diff import diff
from tillbridge.menu.guard import FEW, Rules, Source, findings
from tillbridge.model.catalogue import Catalogue

RULES = Rules(MenuSettings(), AssumptionSettings(), "EUR")
HEADER = "external_id,name,price,category,variant_name,parent_id"
DISHES = (
    "Margherita Marinara Napoli Funghi Diavola Capricciosa Calzone Romana Ortolana Tonno".split()
)

EXPORTS = {
    "few dishes, one heading": "\n".join(
        [HEADER, *(f"{n},{name},{n}.50,Pizza,," for n, name in enumerate(DISHES[:9], 1)), ""]
    ),
    "sizes": "\r\n".join(
        [
            HEADER,
            *(
                row
                for n, name in enumerate(DISHES, 1)
                for row in (
                    f"{n},{name},{n}.50,Pizza,,",
                    f"{n}s,,{n}.50,,small,{n}",
                    f"{n}l,,{n + 2}.50,,large,{n}",
                )
            ),
            "",
        ]
    ),
    "quoted, in two languages": "\n".join(
        [
            HEADER.replace(",", ";"),
            *(
                f'"{n}";"{name} ""grün"" ½";"{n},50";"Ofen|Küche {n % 3}";"";""'
                for n, name in enumerate(DISHES, 1)
            ),
            "",
        ]
    ),
}


def source_of(export: Catalogue) -> Source:
    return Source(export.ends_with_newline, export.facts.encodings)


@pytest.mark.parametrize("name", EXPORTS)
def test_a_cut_at_any_byte_is_held_or_within_a_days_work(tmp_path: Path, name: str) -> None:
    whole = EXPORTS[name].encode()
    accepted = menu_till(tmp_path, whole, currency="EUR").read_catalogue()
    assert accepted.ends_with_newline is True
    passed = []
    for size in range(len(whole)):
        try:
            cut = menu_till(tmp_path, whole[:size], currency="EUR").read_catalogue()
        except ExportUnreadable:
            continue
        changes = diff(accepted, cut)
        totals = totals_of(
            accepted, changes, accepted_from=source_of(accepted), read_from=source_of(cut)
        )
        if changes.needs_push and not findings(changes, totals, RULES):
            passed.append(size)
            assert cut.ends_with_newline, f"{whole[:size][-40:]!r} is pushed"
            assert len(changes.removed) <= FEW
            assert whole[size - 1 : size] in {b"\n", b"\r"}
    rows_of_few = 3 * (FEW + 1)  # a dish is up to three rows; CRLF may be cut in between
    assert len(passed) <= 2 * rows_of_few, "what passes are the last few rows, cut at their ends"


@pytest.mark.parametrize("name", EXPORTS)
def test_without_the_line_end_a_cut_would_pass(tmp_path: Path, name: str) -> None:
    """The control: the same cut of a file whose lines never ended so is a day's work."""
    whole = EXPORTS[name].encode()
    accepted = menu_till(tmp_path, whole, currency="EUR").read_catalogue()
    fewer = dict(list(accepted.items.items())[:-1])
    cut = replace(accepted, items=fewer, ends_with_newline=False)
    changes = diff(accepted, cut)
    ended, unknown = source_of(accepted), source_of(replace(accepted, ends_with_newline=None))
    held = totals_of(accepted, changes, accepted_from=ended, read_from=source_of(cut))
    free = totals_of(accepted, changes, accepted_from=unknown, read_from=source_of(cut))
    assert [each.code for each in findings(changes, held, RULES)] == ["cut_off"]
    assert not findings(changes, free, RULES)
