"""Copies of the ledger go from the oldest on, and no more of them than must."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.ledger.backup import Copy, too_many

copies = st.lists(
    st.builds(
        Copy,
        path=st.just(Path("copy")),
        size=st.integers(0, 10_000),
        at_ms=st.integers(0, 1_000_000),
    ),
    max_size=8,
)


@given(found=copies, ledger=st.integers(0, 50_000), budget=st.integers(0, 60_000))
def test_what_goes_makes_room_and_one_less_would_not(
    found: list[Copy], ledger: int, budget: int
) -> None:
    used = ledger + sum(each.size for each in found)
    going = too_many(found, used, budget)
    left = used - sum(each.size for each in going)
    assert left <= budget or len(going) == len(found)
    if going:
        assert left + going[-1].size > budget
        kept = list(found)
        for each in going:
            kept.remove(each)
        assert all(each.at_ms >= going[-1].at_ms for each in kept)
