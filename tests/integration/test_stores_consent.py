"""A merchant's consent, with a real redirect into a real listener and a real vault."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.support.bridge_process import free_port
from tests.support.sandbox_driver import Driver, driven
from tests.support.service_link import HandClock
from tillbridge.core.errors import BridgeError, Refused
from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.service.client import ServiceLink, StoreLink
from tillbridge.service.oauth import App
from tillbridge.service.types import Tokens
from tillbridge.stores.consent import (
    CallbackAnswer,
    ConsentFlow,
    ConsentRefused,
    VaultTokenStore,
    callback_place,
)
from tillbridge.web.listener import redirect_listener


@dataclass(slots=True)
class Bench:
    driver: Driver
    ledger: Ledger
    clock: HandClock
    store: StoreLink
    tracker: ConsentFlow
    redirect_uri: str


@asynccontextmanager
async def consenting(folder: Path, *, secret: str = "sandbox-secret") -> AsyncIterator[Bench]:
    clock = HandClock()
    redirect_uri = f"http://127.0.0.1:{free_port()}/oauth/callback"
    ledger = await Ledger.open(folder, clock=clock)
    async with driven() as driver:
        link = ServiceLink(
            driver.running.base_url, App("app_123", lambda: secret, redirect_uri), clock=clock
        )
        store = link.store(VaultTokenStore(ledger.vault, "main", driver.running.base_url))
        tracker = ConsentFlow(link, lambda _store: store.tokens, ledger, clock=clock)
        await driver.control("POST", "/consent", {"auto": True})
        try:
            yield Bench(driver, ledger, clock, store, tracker, redirect_uri)
        finally:
            await link.close()
            await ledger.close()


@asynccontextmanager
async def listening(redirect_uri: str, flow: ConsentFlow) -> AsyncIterator[asyncio.Future[str]]:
    """Listen as the daemon does; the future gets what came of a consent that is under way."""
    result: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def take(query: Mapping[str, str]) -> CallbackAnswer:
        ours = query.get("state") in {each.state for each in flow._pending.values()}
        try:
            result.set_result(await flow.returned(query))
        except BridgeError as failure:
            if ours:
                result.set_exception(failure)
            return CallbackAnswer(ok=False, text=failure.text, fix=failure.fix)
        return CallbackAnswer(ok=True, text="Thank you!")

    async with redirect_listener(redirect_uri, take):
        yield result


async def browse(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession(trust_env=False) as session, session.get(url) as response:
        return response.status, await response.text()


async def test_a_merchant_consents_and_the_tokens_are_kept_encrypted(tmp_path: Path) -> None:
    async with consenting(tmp_path) as bench:
        async with listening(bench.redirect_uri, bench.tracker) as told:
            request = bench.tracker.begin("main", email="owner@example.net")
            status, page = await browse(request.url)
            assert await told == "main"
        assert status == 200
        assert "You can close this page" in page
        assert await bench.store.client.stores()
        tokens = await bench.store.tokens.tokens()
        assert tokens is not None
        consent = await bench.ledger.read(lambda db: get_fact(db, "main", "consent"))
        assert consent == {
            "expires_at": tokens.consent_expires_at_ms,
            "obtained_at": tokens.consented_at_ms,
        }
        assert tokens.consent_expires_at_ms - bench.clock.now_ms() == 7 * 24 * 3600 * 1000
        for path in tmp_path.rglob("*"):
            if path.is_file():
                assert tokens.refresh_token.encode() not in path.read_bytes()
        kept = VaultTokenStore(bench.ledger.vault, "main", bench.driver.running.base_url).load()
        assert kept == tokens


async def test_a_forged_redirect_gets_a_page_and_the_real_one_still_works(tmp_path: Path) -> None:
    async with (
        consenting(tmp_path) as bench,
        listening(bench.redirect_uri, bench.tracker) as told,
    ):
        request = bench.tracker.begin("main", email="owner@example.net")
        status, page = await browse(f"{bench.redirect_uri}?code=x&state=<script>")
        assert status == 400
        assert "<script>" not in page
        assert (await browse(f"{bench.redirect_uri}?code=x"))[0] == 400
        await browse(request.url)
        assert await told == "main"


async def test_a_state_is_good_once(tmp_path: Path) -> None:
    async with consenting(tmp_path) as bench:
        request = bench.tracker.begin("main")
        with pytest.raises(Refused) as refused:
            await bench.tracker.finish(code="wrong", state=request.state)
        assert refused.value.code == "auth.invalid_grant"
        with pytest.raises(ConsentRefused):
            await bench.tracker.finish(code="wrong", state=request.state)


async def test_a_new_link_voids_the_earlier_one(tmp_path: Path) -> None:
    async with consenting(tmp_path) as bench:
        earlier = bench.tracker.begin("main")
        bench.tracker.begin("main")
        with pytest.raises(ConsentRefused):
            await bench.tracker.finish(code="x", state=earlier.state)


async def test_a_state_lasts_ten_minutes_by_the_monotonic_clock(tmp_path: Path) -> None:
    async with consenting(tmp_path) as bench:
        request = bench.tracker.begin("main")
        bench.clock.wall_ms += 10**9
        bench.clock.seconds += 601
        with pytest.raises(ConsentRefused, match="took too long"):
            await bench.tracker.finish(code="x", state=request.state)


async def test_a_merchant_who_says_no_is_told_so(tmp_path: Path) -> None:
    async with (
        consenting(tmp_path) as bench,
        listening(bench.redirect_uri, bench.tracker) as told,
    ):
        request = bench.tracker.begin("main")
        status, _page = await browse(
            f"{bench.redirect_uri}?error=access_denied&state={request.state}"
        )
        assert status == 400
        with pytest.raises(ConsentRefused, match="declined"):
            await told


async def test_a_wrong_client_secret_is_said_so_without_showing_it(tmp_path: Path) -> None:
    async with consenting(tmp_path, secret="planted-s3cret") as bench:
        async with listening(bench.redirect_uri, bench.tracker) as told:
            await browse(bench.tracker.begin("main", email="owner@example.net").url)
            with pytest.raises(Refused) as refused:
                await told
        assert refused.value.code == "auth.invalid_client"
        assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "uri", ["http://example.net/cb", "https://127.0.0.1:9/cb", "http://0.0.0.0:9/cb", "x:y"]
)
def test_only_this_machine_listens_for_the_redirect(uri: str) -> None:
    with pytest.raises(BridgeError):
        callback_place(uri)


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    async with (
        consenting(tmp_path) as bench,
        listening(bench.redirect_uri, bench.tracker),
    ):
        with pytest.raises(BridgeError, match=r"listen at redirect_uri http://127\.0\.0\.1"):
            async with listening(bench.redirect_uri, bench.tracker):
                pass


async def test_tokens_are_of_one_service(tmp_path: Path) -> None:
    ledger = await Ledger.open(tmp_path, clock=HandClock())
    try:
        tokens = Tokens("access", "refresh", 0, 0, "menu.write")
        VaultTokenStore(ledger.vault, "main", "https://one.example/v2").save(tokens)
        for same in ("https://one.example/v2", "https://ONE.example:443/v3"):
            assert VaultTokenStore(ledger.vault, "main", same).load() == tokens
        for other in ("http://one.example/v2", "https://one.example:444/v2", "https://two.example"):
            assert VaultTokenStore(ledger.vault, "main", other).load() is None
        ledger.vault.put("main/tokens", json.dumps(asdict(tokens)))  # of a version before
        assert VaultTokenStore(ledger.vault, "main", "https://two.example").load() == tokens
    finally:
        await ledger.close()
