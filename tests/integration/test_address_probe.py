"""The bridge looks at its own public address, and tells when it is dead and well again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.test_stores_standing import Bench, standing
from tillbridge.daemon.checks import CODE, AddressProbe, wants_probing
from tillbridge.diagnostics.checks.public import Judgement
from tillbridge.ledger.facts import get_fact
from tillbridge.setup.proposal import ADDRESS_FACT

URL = "https://store-17.example.net"
REACHED = Judgement(True, "reached", "It leads here.", "")
DEAD = Judgement(False, "tunnel_down", "The tunnel is down.", "Start the tunnel.")
UNCLEAR = Judgement(None, "hairpin", "It cannot be told from here.", "")


@dataclass
class Probed:
    bench: Bench
    probe: AddressProbe
    judgements: list[Judgement] = field(default_factory=list)

    async def sees(self, *judgements: Judgement) -> list[float]:
        waits = []
        for each in judgements:
            self.judgements[:] = [each]
            waits.append(await self.probe.probe())
        return waits

    @property
    def told(self) -> bool:
        return bool(self.bench.tracker.is_open(CODE, ""))


@asynccontextmanager
async def probed(folder: Path) -> AsyncIterator[Probed]:
    async with standing(folder) as bench:
        judgements: list[Judgement] = []

        async def look() -> Judgement:
            return judgements[0]

        probe = AddressProbe(
            URL,
            look,
            bench.ledger,
            bench.tracker,
            clock=bench.service.clock,
            every_s=300,
            jitter=lambda: 0.5,
        )
        yield Probed(bench, probe, judgements)


async def test_a_dead_address_is_told_once_it_failed_twice_in_a_row(tmp_path: Path) -> None:
    async with probed(tmp_path) as harness:
        assert await harness.sees(DEAD) == [5]  # asked again soon, and nobody is told
        assert not harness.told
        assert await harness.sees(DEAD) == [300]
        assert harness.told
        await harness.sees(REACHED)
        assert not harness.told


async def test_one_failure_between_two_good_probes_is_nothing(tmp_path: Path) -> None:
    async with probed(tmp_path) as harness:
        await harness.sees(REACHED, DEAD, REACHED, DEAD, REACHED)
        assert not harness.told


async def test_when_the_address_last_led_here_is_kept_for_the_page(tmp_path: Path) -> None:
    async with probed(tmp_path) as harness:
        await harness.sees(REACHED)
        fact = await harness.bench.ledger.read(lambda db: get_fact(db, "", ADDRESS_FACT))
        now = harness.bench.service.clock.now_ms()
        assert fact == {"url": URL, "ok_at": now, "cause": "reached"}


async def test_without_a_verdict_what_was_known_stands(tmp_path: Path) -> None:
    async with probed(tmp_path) as harness:
        await harness.sees(UNCLEAR, UNCLEAR, UNCLEAR)
        assert not harness.told
        await harness.sees(DEAD, DEAD, UNCLEAR)
        assert harness.told


@pytest.mark.parametrize(
    ("url", "service", "every_s", "wanted"),
    [
        ("https://store-17.example.net", "https://ordering.example.com/v2", 300, True),
        ("https://store-17.example.net", "https://ordering.example.com/v2", 0, False),
        ("https://store-17.example.net", "http://127.0.0.1:9000/v2", 300, False),
        ("http://127.0.0.1:8088", "https://ordering.example.com/v2", 300, False),
        ("http://localhost:8088", "https://ordering.example.com/v2", 300, False),
    ],
)
def test_only_an_address_of_the_internet_is_probed(
    url: str, service: str, every_s: float, wanted: bool
) -> None:
    assert wants_probing(url, service, every_s) is wanted
