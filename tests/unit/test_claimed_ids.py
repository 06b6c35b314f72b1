"""Which rows of a reading have which ids; and that most exports need not be asked."""

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter.claimed_ids import ClaimedIds, all_differ
from tillbridge.adapter.texts import one_line

CELLS = st.lists(st.sampled_from(["", " ", "a", "a ", " a", "a\u200b", "b  b", "b b", "\xa0b"]))


@given(CELLS)
def test_ids_differ_where_no_two_rows_would_clash(cells: list[str]) -> None:
    claimed = ClaimedIds()
    ids = [(one_line(cell), row) for row, cell in enumerate(cells) if one_line(cell)]
    clashes = [claimed.claim([each], row) for row, each in enumerate(ids)]
    assert all_differ(cells) == (not any(clashes))


def test_the_first_record_keeps_its_ids() -> None:
    claimed = ClaimedIds()
    assert claimed.claim([("soup", 2), ("small", 3)], 17) is None
    clash = claimed.claim([("tea", 4), ("small", 5)], 18)
    assert clash is not None
    assert (clash.external_id, clash.row, clash.first_row, clash.is_same) == ("small", 5, 3, False)
    assert claimed.claim([("tea", 6)], 19) is None, "what clashes claims nothing"
    again = claimed.claim([("soup", 7), ("small", 8)], 17)
    assert again is not None
    assert again.is_same
