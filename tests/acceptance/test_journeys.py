"""What one act costs the ledger, counted in the running daemon."""

from pathlib import Path

from bench.journeys import delivery, traced


async def test_a_delivery_is_accepted_with_five_writes_and_without_reading_back(
    tmp_path: Path,
) -> None:
    journey = await traced(tmp_path, delivery)
    assert 3 <= journey.writes <= 5
    assert journey.reads <= 2
    assert any("OrderRepository.commit" in each for each in journey.functions), "it was traced"
