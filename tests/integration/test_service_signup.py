"""The signup call against a sandbox: Basic or the id in the body, and merchants who exist."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from yarl import URL

from tests.support.sandbox_driver import Driver, driven
from tests.support.service_link import REDIRECT_URI, HandClock
from tillbridge.core.errors import Conflict, Refused
from tillbridge.sandbox import SandboxSettings
from tillbridge.service.client import ServiceLink
from tillbridge.service.oauth import App, SignupRequest

CLIENT_ID, CLIENT_SECRET = "app_123", "sandbox-secret"
NEW = SignupRequest("new@example.com", "Bar Nuovo", "loc-9", flow_type="signup")


@asynccontextmanager
async def linked(
    *, secret: str = "", with_secret: bool = True
) -> AsyncIterator[tuple[ServiceLink, Driver]]:
    async with driven(SandboxSettings()) as driver:
        app = App(
            CLIENT_ID,
            lambda: secret or CLIENT_SECRET,
            REDIRECT_URI,
            signup_with_secret=with_secret,
        )
        link = ServiceLink(driver.running.base_url, app, clock=HandClock())
        try:
            yield link, driver
        finally:
            await link.close()


@pytest.mark.parametrize("with_secret", [True, False], ids=["basic", "body"])
async def test_a_new_merchant_gets_an_authorize_url(with_secret: bool) -> None:
    async with linked(with_secret=with_secret) as (link, driver):
        told = await link.signup().url(NEW, "state-1")
        url = URL(told.url)
        assert not told.as_login
        assert url.path.endswith("/oauth2/authorize")
        assert url.query["state"] == "state-1"
        assert url.query["email"] == "new@example.com"
        (sent,) = (await driver.control("GET", "/requests")).body["requests"]
        assert (sent["method"], sent["path"], sent["status"]) == ("POST", "/pos/signup_url", 200)
        assert sent["body"].get("client_id") == (None if with_secret else CLIENT_ID)
        assert CLIENT_SECRET not in told.url


async def test_a_merchant_who_exists_logs_in_instead() -> None:
    async with linked() as (link, _driver):
        known = SignupRequest("owner@example.net", "Main", "loc-9", flow_type="signup")
        told = await link.signup().url(known, "state-1")
        assert told.as_login
        assert URL(told.url).query["flow_type"] == "login"


async def test_a_wrong_secret_says_what_to_do_and_shows_nothing() -> None:
    async with linked(secret="wrong-secret-4711") as (link, _driver):
        with pytest.raises(Refused) as caught:
            await link.signup().url(NEW, "state-1")
        assert caught.value.code == "auth.invalid_client"
        assert "client_secret" in caught.value.fix
        assert "4711" not in str(caught.value)


async def test_a_mapping_that_conflicts_for_good_names_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with linked() as (link, _driver):
        signup = link.signup()

        async def always(*_arguments: object) -> str:
            raise Conflict("exists", code="onboarding.merchant_exists", status=409)

        monkeypatch.setattr(signup, "_ask", always)
        with pytest.raises(Conflict) as caught:
            await signup.url(NEW, "state-1")
        assert "tillbridge connect STORE --email" in caught.value.fix
