"""Tokens: refreshed early and once, kept first, and no hammering when the consent is gone."""

import asyncio

import pytest

from tests.support.service_link import HandClock, MemoryTokens
from tillbridge import service
from tillbridge.core.errors import ConsentLost, LedgerUnwritable, ServiceDown
from tillbridge.service.tokens import AccessGrant, StoreTokens
from tillbridge.service.types import Tokens

HOUR_MS = 3_600_000


class Service:
    """Answers refreshes: counts them, and fails as told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self.lifetime_s = 3600.0
        self.go = asyncio.Event()
        self.go.set()

    async def refresh(self, refresh_token: str) -> AccessGrant:
        self.asked.append(refresh_token)
        await self.go.wait()
        if self.failure is not None:
            raise self.failure
        return AccessGrant(f"access-{len(self.asked)}", self.lifetime_s)


class Bench:
    def __init__(self, *, lifetime_s: float = 3600) -> None:
        self.clock = HandClock()
        self.service = Service()
        now = self.clock.now_ms()
        self.store = MemoryTokens(Tokens("access-0", "refresh", now + int(lifetime_s * 1000), now))
        self.keeper = self.restarted()

    def restarted(self) -> StoreTokens:
        return StoreTokens(self.store, self.service.refresh, clock=self.clock, refresh_early_s=60)


async def test_a_kept_token_is_used_until_a_minute_before_its_end() -> None:
    bench = Bench()
    bench.clock.pass_s(3539)
    assert await bench.keeper.access_token() == "access-0"
    bench.keeper = bench.restarted()
    bench.clock.pass_s(2)
    assert await bench.keeper.access_token() == "access-1"
    assert bench.service.asked == ["refresh"]


async def test_a_refresh_keeps_the_refresh_token_and_the_day_of_consent() -> None:
    bench = Bench(lifetime_s=0)
    consented = bench.clock.now_ms()
    bench.clock.pass_s(10)
    await bench.keeper.access_token()
    kept = bench.store.kept
    assert kept is not None
    assert kept.refresh_token == "refresh"
    assert kept.access_expires_at_ms == consented + 10_000 + HOUR_MS
    assert kept.consent_expires_at_ms == consented + 7 * 24 * HOUR_MS


async def test_however_many_wait_one_refresh_is_made() -> None:
    bench = Bench(lifetime_s=0)
    bench.service.go.clear()
    callers = [asyncio.create_task(bench.keeper.access_token()) for _caller in range(50)]
    await asyncio.sleep(0.02)
    callers[0].cancel()  # one that gives up takes nobody with it
    bench.service.go.set()
    tokens = await asyncio.gather(*callers[1:])
    assert set(tokens) == {"access-1"}
    assert len(bench.service.asked) == 1


async def test_a_refused_token_is_renewed_once_for_all_who_used_it() -> None:
    bench = Bench()
    first = await bench.keeper.renewed("access-0")
    again = await bench.keeper.renewed("access-0")
    assert first == again == "access-1"
    assert len(bench.service.asked) == 1


async def test_a_token_that_does_not_help_is_not_renewed_for_every_call() -> None:
    bench = Bench()
    token, renewals = "access-0", []
    for second in range(3600):  # each call of an hour is refused, whatever the token
        bench.clock.seconds += 1
        renewed = await bench.keeper.renewed(token)
        if renewed is not None:
            token = renewed
            renewals.append(second)
    assert renewals[:4] == [0, 10, 30, 70]
    assert len(renewals) <= 20
    bench.clock.seconds += 600  # a token that was good for some time is renewed at once
    assert await bench.keeper.renewed(token) is not None


@pytest.mark.parametrize("jump_s", [-86_400 * 365, 86_400 * 365])
async def test_a_jump_of_the_wall_clock_changes_nothing(jump_s: float) -> None:
    bench = Bench()
    assert await bench.keeper.access_token() == "access-0"
    bench.clock.wall_ms += int(jump_s * 1000)
    assert await bench.keeper.access_token() == "access-0"
    bench.clock.seconds += 3600
    assert await bench.keeper.access_token() == "access-1"


async def test_a_wall_clock_set_back_before_the_start_does_not_stretch_a_token() -> None:
    bench = Bench()
    bench.clock.wall_ms -= 86_400_000
    await bench.keeper.access_token()
    bench.clock.seconds += 3600
    assert await bench.keeper.access_token() == "access-1"


async def test_a_token_that_lives_shortly_is_not_refreshed_for_every_call() -> None:
    bench = Bench(lifetime_s=0)
    bench.service.lifetime_s = 20
    for _call in range(5):
        assert await bench.keeper.access_token() == "access-1"


async def test_an_early_refresh_that_fails_leaves_the_token_that_still_works() -> None:
    bench = Bench()
    await bench.keeper.tokens()
    bench.clock.pass_s(3545)
    bench.service.failure = ServiceDown("ill", status=503)
    for _call in range(5):
        assert await bench.keeper.access_token() == "access-0"
    assert len(bench.service.asked) == 1
    bench.clock.pass_s(60)
    with pytest.raises(ServiceDown):
        await bench.keeper.access_token()


async def test_a_lost_consent_is_asked_for_once_and_then_told_at_once() -> None:
    bench = Bench(lifetime_s=0)
    bench.service.failure = ConsentLost("revoked", code="auth.consent_revoked", status=403)
    for _call in range(20):
        with pytest.raises(ConsentLost) as lost:
            await bench.keeper.access_token()
        assert lost.value.code == "auth.consent_revoked"
    assert len(bench.service.asked) == 1


async def test_new_tokens_end_a_lost_consent() -> None:
    bench = Bench(lifetime_s=0)
    bench.service.failure = ConsentLost("expired", code="auth.invalid_grant", status=400)
    with pytest.raises(ConsentLost):
        await bench.keeper.access_token()
    now = bench.clock.now_ms()
    await bench.keeper.adopt(Tokens("fresh", "refresh-2", now + HOUR_MS, now))
    assert await bench.keeper.access_token() == "fresh"
    assert bench.keeper.lost is None


async def test_tokens_that_another_process_kept_are_found() -> None:
    bench = Bench(lifetime_s=0)
    bench.service.failure = ConsentLost("expired", code="auth.invalid_grant", status=400)
    with pytest.raises(ConsentLost):
        await bench.keeper.access_token()
    now = bench.clock.now_ms()
    bench.store.kept = Tokens("fresh", "refresh-2", now + HOUR_MS, now)
    await bench.keeper.reload()
    assert await bench.keeper.access_token() == "fresh"


async def test_a_late_no_to_an_old_token_does_not_end_a_new_consent() -> None:
    bench = Bench()
    old = await bench.keeper.access_token()
    now = bench.clock.now_ms()
    await bench.keeper.adopt(Tokens("fresh", "refresh-2", now + HOUR_MS, now))
    bench.keeper.mark_lost(ConsentLost("revoked"), old)
    assert await bench.keeper.access_token() == "fresh"


async def test_without_consent_nothing_is_asked() -> None:
    bench = Bench()
    bench.store.kept = None
    with pytest.raises(ConsentLost) as lost:
        await bench.keeper.access_token()
    assert lost.value.code == "consent.missing"
    assert bench.service.asked == []


class BrokenStore(MemoryTokens):
    def save(self, tokens: Tokens) -> None:
        raise LedgerUnwritable("the disk is full")


async def test_a_full_disk_stops_no_refresh() -> None:
    bench = Bench()
    bench.store = BrokenStore(bench.store.kept)
    bench.keeper = bench.restarted()
    bench.clock.pass_s(4000)
    assert await bench.keeper.access_token() == "access-1"


async def test_a_new_consent_is_kept_before_it_is_used() -> None:
    bench = Bench()
    bench.keeper = StoreTokens(BrokenStore(), bench.service.refresh, clock=bench.clock)
    with pytest.raises(LedgerUnwritable):
        await bench.keeper.adopt(Tokens("fresh", "refresh-2", HOUR_MS, 0))
    with pytest.raises(ConsentLost):
        await bench.keeper.access_token()


async def test_closing_ends_a_refresh_nobody_waits_for() -> None:
    bench = Bench(lifetime_s=0)
    bench.service.go.clear()
    caller = asyncio.create_task(bench.keeper.access_token())
    await asyncio.sleep(0.02)
    caller.cancel()
    await bench.keeper.close()
    with pytest.raises(asyncio.CancelledError):
        await caller


def test_the_old_name_still_leads_to_the_tokens_of_a_store() -> None:
    assert service.TokenKeeper is service.StoreTokens
