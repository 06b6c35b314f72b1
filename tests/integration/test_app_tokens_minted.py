"""App-level tokens from a strict service, and where they are kept."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.service_link import Linked, linked
from tillbridge.core.errors import RateLimited, Refused
from tillbridge.ledger.vault import Vault
from tillbridge.sandbox import SandboxSettings
from tillbridge.service.answers import Limits
from tillbridge.service.client import ServiceLink
from tillbridge.service.oauth import App
from tillbridge.service.tokens import Access, StoredToken
from tillbridge.stores.consent import VaultAppTokens


async def minted(bench: Linked) -> int:
    return len(await bench.asked("/oauth2/token"))


async def read(bench: Linked, link: ServiceLink) -> int:
    hall = link.app(audience="communities")
    return (await hall.caller.call("communities.catalogue", "com_food_hall")).status


async def test_a_token_has_the_scopes_that_were_asked_for() -> None:
    async with linked() as bench:
        token = bench.link.app(audience="reporting", scope="reports.read").token
        assert await token.access_token()
        both = bench.link.app(audience="reporting", scope="reports.read catalogue.write").token
        assert await both.access_token() != await token.access_token()
        told = (await bench.driver.state())["tokens"]
        assert [each["scopes"] for each in told] == [
            ["reports.read"],
            ["catalogue.write", "reports.read"],
        ]


async def test_many_calls_at_once_mint_one_token() -> None:
    async with linked() as bench:
        assert set(await asyncio.gather(*(read(bench, bench.link) for _ in range(20)))) == {200}
        assert await minted(bench) == 1


@pytest.mark.parametrize("how", ["expire", "invalidate"])
async def test_a_refused_token_is_minted_anew_and_the_call_repeated_once(how: str) -> None:
    async with linked() as bench:
        await read(bench, bench.link)
        await bench.driver.control("POST", f"/tokens/{how}", {"kind": "app"})
        assert await read(bench, bench.link) == 200
        assert [status for *_call, status in await bench.asked("/catalogue")] == [200, 401, 200]
        assert await minted(bench) == 2


@pytest.mark.parametrize(
    ("audience", "scope", "secret", "code"),
    [
        ("hub", "", "sandbox-secret", "request.validation"),
        ("reporting", "menu.write", "sandbox-secret", "request.validation"),
        ("reporting", "reports.read", "wrong", "auth.invalid_client"),
    ],
)
async def test_a_refusal_says_what_to_set_and_quotes_no_secret(
    audience: str, scope: str, secret: str, code: str
) -> None:
    async with linked() as bench:
        link = ServiceLink(
            bench.driver.running.base_url,
            App("app_123", lambda: secret, "http://127.0.0.1:1/"),
            clock=bench.clock,
        )
        with pytest.raises(Refused) as refused:
            await link.app(audience=audience, scope=scope).token.access_token()
        await link.close()
        assert refused.value.code == code
        assert "secret" in refused.value.fix or "[assumptions]" in refused.value.fix
        assert secret not in str(refused.value)


async def test_the_scopes_field_has_the_name_that_is_set() -> None:
    settings = replace(SandboxSettings(), scope_field="scopes")
    async with linked(settings) as bench:
        app = App("app_123", lambda: "sandbox-secret", "http://127.0.0.1:1/", "scopes")
        link = ServiceLink(bench.driver.running.base_url, app, clock=bench.clock)
        assert await link.app(audience="", scope="reports.read").token.access_token()
        await link.close()


async def test_a_rate_limit_is_told_as_such() -> None:
    async with linked(limits=Limits(rate_limit_patience_s=0)) as bench:
        await bench.fault("error", "/oauth2/token$", status=429, retry_after_s=30)
        with pytest.raises(RateLimited):
            await bench.link.app(audience="communities").token.access_token()


async def test_tokens_are_kept_encrypted_and_for_their_app_alone(tmp_path: Path) -> None:
    vault = Vault(tmp_path)
    ours = VaultAppTokens(vault, base_url="https://a.example/v2", client_id="app_1")
    reports, hall = Access("reporting", "reports.read"), Access("communities")
    ours.save(reports, StoredToken("t0ken-reports", 1000, 9000))
    ours.save(hall, StoredToken("t0ken-hall", 2000, 9000))
    assert b"t0ken" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())

    again = VaultAppTokens(Vault(tmp_path), base_url="https://a.example/v2", client_id="app_1")
    assert again.load(reports) == StoredToken("t0ken-reports", 1000, 9000)
    assert again.load(hall) == StoredToken("t0ken-hall", 2000, 9000)
    other = VaultAppTokens(Vault(tmp_path), base_url="https://a.example/v2", client_id="app_2")
    assert other.load(reports) is None

    again.save(hall, StoredToken("t0ken-late", 9500, 12_000))
    assert again.load(reports) is None  # it was over
