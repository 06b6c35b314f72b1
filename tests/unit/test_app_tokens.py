"""App-level tokens: minted once however many ask, used until shortly before their end, kept."""

import asyncio

import pytest

from tests.support.service_link import HandClock
from tillbridge.core.errors import LedgerUnwritable, Refused, ServiceDown
from tillbridge.service.tokens import Access, AccessGrant, AppToken, AppTokenStore, StoredToken

REPORTS = Access("reporting", "reports.read")


class BrokenStore(AppTokenStore):
    def save(self, access: Access, token: StoredToken) -> None:
        raise LedgerUnwritable("full")


class Bench:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.store = AppTokenStore()
        self.minted: list[Access] = []
        self.lifetime_s = 3600.0
        self.failure: Exception | None = None
        self.go = asyncio.Event()
        self.go.set()
        self.token = self.restarted()

    def restarted(self) -> AppToken:
        return AppToken(REPORTS, self.mint, self.store, clock=self.clock, early_s=60)

    async def mint(self, access: Access) -> AccessGrant:
        self.minted.append(access)
        await self.go.wait()
        if self.failure is not None:
            raise self.failure
        return AccessGrant(f"app-{len(self.minted)}", self.lifetime_s)


async def test_a_token_is_used_until_a_minute_before_its_end() -> None:
    bench = Bench()
    assert await bench.token.access_token() == "app-1"
    bench.clock.pass_s(3539)
    assert await bench.token.access_token() == "app-1"
    bench.clock.pass_s(2)
    assert await bench.token.access_token() == "app-2"


async def test_however_many_ask_one_token_is_minted() -> None:
    bench = Bench()
    bench.go.clear()
    callers = [asyncio.create_task(bench.token.access_token()) for _caller in range(50)]
    await asyncio.sleep(0.02)
    callers[0].cancel()  # one that gives up takes nobody with it
    bench.go.set()
    assert set(await asyncio.gather(*callers[1:])) == {"app-1"}
    assert bench.minted == [REPORTS]


async def test_the_next_run_goes_on_with_the_kept_token() -> None:
    bench = Bench()
    await bench.token.access_token()
    bench.clock.pass_s(600)
    bench.token = bench.restarted()
    assert await bench.token.access_token() == "app-1"
    bench.clock.pass_s(2945)
    assert await bench.token.access_token() == "app-2"


async def test_a_wall_clock_that_was_set_back_costs_a_minting_and_no_more() -> None:
    bench = Bench()
    await bench.token.access_token()
    bench.clock.wall_ms -= 86_400_000
    bench.token = bench.restarted()
    assert await bench.token.access_token() == "app-2"


async def test_a_jump_of_the_wall_clock_changes_nothing_while_it_runs() -> None:
    bench = Bench()
    await bench.token.access_token()
    for jump_s in (-86_400, 172_800):
        bench.clock.wall_ms += jump_s * 1000
        assert await bench.token.access_token() == "app-1"
    bench.clock.seconds += 3600
    assert await bench.token.access_token() == "app-2"


async def test_a_refused_token_is_minted_anew_once_for_all_who_used_it() -> None:
    bench = Bench()
    await bench.token.access_token()
    assert await bench.token.renewed("app-1") == "app-2"
    assert await bench.token.renewed("app-1") == "app-2"
    assert bench.minted == [REPORTS, REPORTS]
    stored = bench.store.load(REPORTS)
    assert stored is not None
    assert stored.access_token == "app-2"


async def test_a_token_that_lives_shortly_is_not_minted_for_every_call() -> None:
    bench = Bench()
    bench.lifetime_s = 20
    for _call in range(5):
        assert await bench.token.access_token() == "app-1"


async def test_an_early_minting_that_fails_leaves_the_token_that_still_works() -> None:
    bench = Bench()
    await bench.token.access_token()
    bench.clock.pass_s(3545)
    bench.failure = ServiceDown("ill", status=503)
    for _call in range(5):
        assert await bench.token.access_token() == "app-1"
    assert len(bench.minted) == 2
    bench.clock.pass_s(60)
    with pytest.raises(ServiceDown):
        await bench.token.access_token()


async def test_a_refusal_is_told_to_whoever_asks_and_asked_again_by_the_next() -> None:
    bench = Bench()
    bench.failure = Refused("no", code="auth.invalid_client", status=401)
    with pytest.raises(Refused):
        await bench.token.access_token()
    bench.failure = None
    assert await bench.token.access_token() == "app-2"


async def test_a_full_disk_costs_no_token() -> None:
    bench = Bench()
    bench.store = BrokenStore()
    bench.token = bench.restarted()
    assert await bench.token.access_token() == "app-1"
    assert await bench.token.access_token() == "app-1"
