import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from yarl import URL

from tests.support.sandbox_driver import Driver, Json, driven
from tillbridge.sandbox import AppSeed, MerchantSeed, SandboxSettings, StoreSeed

CALLBACK = "http://127.0.0.1:8089/oauth/callback"
CREDENTIALS = {"client_id": "app_123", "client_secret": "sandbox-secret"}
WEEK = 7 * 24 * 3600


@pytest.fixture
async def bridge() -> AsyncIterator[Driver]:
    async with driven() as driver:
        yield driver


def signup(**changes: Json) -> dict[str, Any]:
    body: dict[str, Any] = {
        "location_id": "loc-1",
        "store_name": "Main",
        "email": "owner@example.net",
        "redirect_uri": CALLBACK,
        "state": "s-1",
        "client_id": "app_123",
    } | changes
    return {name: value for name, value in body.items() if value is not None}


async def signup_url(bridge: Driver, **changes: Json) -> str:
    answer = await bridge.call("POST", "/pos/signup_url", signup(**changes), token="")
    assert answer.status == 200, answer.body
    assert answer.body["status"] == "success"
    return str(answer.body["signup_url"])


async def consent(bridge: Driver, url: str) -> URL:
    """What auto-consent redirects to."""
    await bridge.control("POST", "/consent", {"auto": True})
    async with bridge.session.get(url, allow_redirects=False) as response:
        assert response.status == 302
        return URL(response.headers["Location"])


async def exchange(bridge: Driver, code: str, **changes: Json) -> Json:
    body = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        **CREDENTIALS,
    }
    return await bridge.call("POST", "/oauth2/token", body | changes, token="")


async def refresh(bridge: Driver, token: str) -> Json:
    body = {"grant_type": "refresh_token", "refresh_token": token}
    return await bridge.call("POST", "/oauth2/refresh", body, token="")


async def signed_in(bridge: Driver) -> dict[str, Any]:
    callback = await consent(bridge, await signup_url(bridge))
    tokens: dict[str, Any] = (await exchange(bridge, callback.query["code"])).body
    bridge.token = tokens["access_token"]
    return tokens


async def test_a_merchant_consents_and_the_code_becomes_tokens(bridge: Driver) -> None:
    callback = await consent(bridge, await signup_url(bridge))
    assert callback.query["state"] == "s-1"
    answer = await exchange(bridge, callback.query["code"])
    assert answer.status == 200
    assert answer.body.keys() == {
        "token_type",
        "access_token",
        "refresh_token",
        "expires_in",
        "scope",
    }
    assert answer.body["token_type"] == "Bearer"
    assert answer.body["expires_in"] == 3600
    stores = await bridge.call("GET", "/pos/stores", token=answer.body["access_token"])
    assert [store["store_id"] for store in stores.body] == ["st_main"]


async def test_basic_credentials_serve_for_the_signup_url(bridge: Driver) -> None:
    basic = base64.b64encode(b"app_123:sandbox-secret").decode()
    headers = {"Authorization": f"Basic {basic}"}
    answer = await bridge.call(
        "POST", "/pos/signup_url", signup(client_id=None), token="", headers=headers
    )
    assert answer.status == 200


@pytest.mark.parametrize(
    "header", ["Basic " + base64.b64encode(b"app_123:wrong").decode(), "Basic ???", "Bearer x"]
)
async def test_wrong_basic_credentials_are_an_invalid_client(bridge: Driver, header: str) -> None:
    headers = {"Authorization": header}
    answer = await bridge.call("POST", "/pos/signup_url", signup(), token="", headers=headers)
    assert (answer.status, answer.code) == (401, "auth.invalid_client")


async def test_a_signup_without_an_app_is_an_invalid_client(bridge: Driver) -> None:
    answer = await bridge.call("POST", "/pos/signup_url", signup(client_id=None), token="")
    assert (answer.status, answer.code) == (401, "auth.invalid_client")


async def test_only_loopback_redirects_where_none_is_registered(bridge: Driver) -> None:
    body = signup(redirect_uri="https://thief.example/cb")
    answer = await bridge.call("POST", "/pos/signup_url", body, token="")
    assert (answer.status, answer.code) == (400, "request.validation")
    assert answer.message.startswith("redirect_uri:")


async def test_only_registered_redirects_where_there_are_some() -> None:
    apps = (AppSeed(redirect_uris=("https://pos.example/cb",)),)
    async with driven(SandboxSettings(apps=apps)) as bridge:
        refused = await bridge.call("POST", "/pos/signup_url", signup(), token="")
        assert refused.code == "request.validation"
        assert await signup_url(bridge, redirect_uri="https://pos.example/cb")


async def test_a_signup_for_a_known_merchant_conflicts_until_it_is_a_login() -> None:
    merchants = (MerchantSeed(stores=(StoreSeed(location_id="loc-9"),)),)
    async with driven(SandboxSettings(merchants=merchants)) as bridge:
        answer = await bridge.call("POST", "/pos/signup_url", signup(), token="")
        assert (answer.status, answer.code) == (409, "onboarding.merchant_exists")
        assert await signup_url(bridge, flow_type="login")
        assert await signup_url(bridge, location_id="loc-9")


async def test_a_forced_signup_of_a_known_merchant_conflicts(bridge: Driver) -> None:
    body = signup(flow_type="signup")
    answer = await bridge.call("POST", "/pos/signup_url", body, token="")
    assert (answer.status, answer.code) == (409, "onboarding.merchant_exists")
    url = URL(await signup_url(bridge, flow_type="login"))
    assert url.query["flow_type"] == "login"


async def test_a_forced_login_lets_no_stranger_in(bridge: Driver) -> None:
    url = await signup_url(bridge, flow_type="login", email="nobody@example.net")
    assert (await consent(bridge, url)).query["error"] == "access_denied"
    emails = [merchant["email"] for merchant in (await bridge.state())["merchants"]]
    assert emails == ["owner@example.net"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"business_phone": "0555 0001"}, "business_phone"),
        ({"locale": "English"}, "locale"),
        ({"flow_type": "register"}, "flow_type"),
        ({"email": "owner"}, "email"),
        ({"state": ""}, "state"),
        ({"redirect_uri": "/callback"}, "redirect_uri"),
        ({"address": {"street": "x"}}, "address.street"),
        ({"app_id": "app_123"}, "app_id"),
    ],
)
async def test_a_refused_signup_names_the_field(
    bridge: Driver, changes: dict[str, Json], field: str
) -> None:
    answer = await bridge.call("POST", "/pos/signup_url", signup(**changes), token="")
    assert answer.status == 400
    assert answer.message.startswith(f"{field}:")


async def test_a_complete_signup_is_taken(bridge: Driver) -> None:
    assert await signup_url(
        bridge,
        first_name="Ada",
        last_name="King",
        business_phone="+44 20 7946 0958",
        locale="en-GB",
        address={"street_address": "1 Road", "city": "L", "state": "", "country": "GB", "zip": ""},
    )


async def test_the_credentials_of_header_and_body_must_agree() -> None:
    apps = (AppSeed(), AppSeed("app_other", "x"))
    async with driven(SandboxSettings(apps=apps)) as bridge:
        basic = base64.b64encode(b"app_other:x").decode()
        headers = {"Authorization": f"Basic {basic}"}
        answer = await bridge.call("POST", "/pos/signup_url", signup(), token="", headers=headers)
        assert (answer.status, answer.code) == (401, "auth.invalid_client")


async def test_the_consent_page_names_the_merchant_and_sends_the_browser_back(
    bridge: Driver,
) -> None:
    url = URL(await signup_url(bridge))
    async with bridge.session.get(url) as response:
        page = await response.text()
    assert "owner@example.net" in page
    assert "Allow" in page
    form = dict(url.query) | {"decision": "allow"}
    async with bridge.session.post(
        url.with_query(None), data=form, allow_redirects=False
    ) as response:
        callback = URL(response.headers["Location"])
    assert str(callback).startswith(CALLBACK)
    assert (await exchange(bridge, callback.query["code"])).status == 200


async def test_a_merchant_who_does_not_allow_is_sent_back_without_a_code(bridge: Driver) -> None:
    url = URL(await signup_url(bridge))
    form = dict(url.query) | {"decision": "deny"}
    async with bridge.session.post(
        url.with_query(None), data=form, allow_redirects=False
    ) as response:
        callback = URL(response.headers["Location"])
    assert dict(callback.query) == {"error": "access_denied", "state": "s-1"}


async def test_a_new_merchant_gets_a_store_whose_location_is_the_signups(bridge: Driver) -> None:
    url = await signup_url(bridge, email="new@example.net", store_name="Corner", location_id="l-7")
    callback = await consent(bridge, url)
    bridge.token = (await exchange(bridge, callback.query["code"])).body["access_token"]
    (store,) = (await bridge.call("GET", "/pos/stores")).body
    assert store["name"] == "Corner"
    answer = await bridge.call(
        "POST",
        f"/pos/integrate-store/{store['store_id']}",
        {"webhook_url": "https://pos.example/h"},
    )
    assert answer.body["external_store_id"] == "l-7"
    assert answer.body["notification_email"] == "new@example.net"


async def test_auto_consent_without_an_e_mail_is_the_first_merchants(bridge: Driver) -> None:
    query = {"client_id": "app_123", "redirect_uri": CALLBACK, "state": "s-2"}
    url = URL(f"{bridge.running.base_url}/oauth2/authorize").with_query(query)
    callback = await consent(bridge, str(url))
    assert callback.query["state"] == "s-2"
    assert (await exchange(bridge, callback.query["code"])).status == 200


async def test_authorize_refuses_unknown_apps_and_foreign_redirects(bridge: Driver) -> None:
    query = "?client_id=nobody&redirect_uri=http://127.0.0.1/&state=s"
    answer = await bridge.call("GET", f"/oauth2/authorize{query}", token="")
    assert (answer.status, answer.code) == (401, "auth.invalid_client")
    query = "?client_id=app_123&redirect_uri=https://thief.example/&state=s"
    answer = await bridge.call("GET", f"/oauth2/authorize{query}", token="")
    assert (answer.status, answer.code) == (400, "request.validation")


async def test_a_code_works_once_for_its_own_redirect_and_not_for_ever(bridge: Driver) -> None:
    async def code() -> str:
        return (await consent(bridge, await signup_url(bridge))).query["code"]

    used = await code()
    other = await exchange(bridge, used, redirect_uri="http://127.0.0.1:1/other")
    assert (other.status, other.code) == (400, "auth.invalid_grant")
    assert (await exchange(bridge, used)).status == 200
    assert (await exchange(bridge, used)).code == "auth.invalid_grant"
    late = await code()
    await bridge.jump(601)
    assert (await exchange(bridge, late)).code == "auth.invalid_grant"
    assert (await exchange(bridge, "made-up")).code == "auth.invalid_grant"


async def test_wrong_app_credentials_get_no_token(bridge: Driver) -> None:
    for changes in ({"client_secret": "x"}, {"client_id": "nobody"}):
        answer = await exchange(bridge, "any", **changes)
        assert (answer.status, answer.code) == (401, "auth.invalid_client")


async def test_a_rotated_app_secret_is_valid_at_once_and_old_tokens_work_on(bridge: Driver) -> None:
    await signed_in(bridge)
    await bridge.control("POST", "/apps/app_123/secret", {"client_secret": "fresh"})
    assert (await exchange(bridge, "any")).code == "auth.invalid_client"
    assert (await exchange(bridge, "any", client_secret="fresh")).code == "auth.invalid_grant"
    assert (await bridge.call("GET", "/pos/stores")).status == 200


async def test_an_unknown_grant_type_is_a_validation_failure(bridge: Driver) -> None:
    answer = await exchange(bridge, "any", grant_type="password")
    assert (answer.status, answer.code) == (400, "request.validation")
    assert "grant_type" in answer.message


async def test_the_token_body_takes_no_other_fields(bridge: Driver) -> None:
    answer = await exchange(bridge, "any", scope="all")
    assert (answer.status, answer.code) == (400, "request.unknown_field")
    assert "scope" in answer.message


async def test_an_access_token_lives_an_hour_and_is_refreshed(bridge: Driver) -> None:
    tokens = await signed_in(bridge)
    await bridge.jump(3599)
    assert (await bridge.call("GET", "/pos/stores")).status == 200
    await bridge.jump(2)
    answer = await bridge.call("GET", "/pos/stores")
    assert (answer.status, answer.code) == (401, "auth.token_expired")
    fresh = await refresh(bridge, tokens["refresh_token"])
    assert fresh.body.keys() == {"token_type", "access_token", "expires_in", "scope"}
    assert (await bridge.call("GET", "/pos/stores", token=fresh.body["access_token"])).status == 200


async def test_a_refresh_token_lives_a_week_and_refreshing_does_not_renew_it(
    bridge: Driver,
) -> None:
    tokens = await signed_in(bridge)
    await bridge.jump(WEEK - 10)
    assert (await refresh(bridge, tokens["refresh_token"])).status == 200
    await bridge.jump(11)
    answer = await refresh(bridge, tokens["refresh_token"])
    assert (answer.status, answer.code) == (400, "auth.invalid_grant")
    assert (await refresh(bridge, tokens["access_token"])).code == "auth.invalid_grant"


async def test_revoked_consent_stops_tokens_until_the_merchant_consents_again(
    bridge: Driver,
) -> None:
    tokens = await signed_in(bridge)
    await bridge.control("POST", "/tokens/revoke", {})
    answer = await bridge.call("GET", "/pos/stores")
    assert (answer.status, answer.code) == (403, "auth.consent_revoked")
    answer = await refresh(bridge, tokens["refresh_token"])
    assert (answer.status, answer.code) == (403, "auth.consent_revoked")
    await signed_in(bridge)
    assert (await bridge.call("GET", "/pos/stores")).status == 200


async def test_an_uninstall_also_disables_the_integrations(bridge: Driver) -> None:
    await bridge.integrate()
    await bridge.control("POST", "/tokens/revoke", {"uninstall": True})
    await signed_in(bridge)
    answer = await bridge.call("GET", "/pos/integrations/st_main")
    assert (answer.status, answer.code) == (404, "store.not_integrated")
    (store,) = (await bridge.call("GET", "/pos/stores")).body
    assert store["integration_status"] == "disabled"
    await bridge.integrate()


@pytest.mark.parametrize("header", [None, "Bearer made-up", "Bearer", "Basic abc", "ApiKey k"])
async def test_anything_but_a_known_bearer_is_an_invalid_token(
    bridge: Driver, header: str | None
) -> None:
    headers = {"Authorization": header} if header else {}
    answer = await bridge.call("GET", "/pos/stores", token="", headers=headers)
    assert (answer.status, answer.code) == (401, "auth.invalid_token")


async def test_invalidated_tokens_are_unknown(bridge: Driver) -> None:
    tokens = await signed_in(bridge)
    await bridge.control("POST", "/tokens/invalidate", {"kind": "access"})
    assert (await bridge.call("GET", "/pos/stores")).code == "auth.invalid_token"
    assert (await refresh(bridge, tokens["refresh_token"])).status == 200


async def test_an_app_level_token_is_of_no_use_on_pos_routes(bridge: Driver) -> None:
    body = {"grant_type": "client_credentials", "audience": "communities", **CREDENTIALS}
    answer = await bridge.call("POST", "/oauth2/token", body, token="")
    assert answer.body.keys() == {"access_token", "expires_in"}
    refused = await bridge.call("GET", "/pos/stores", token=answer.body["access_token"])
    assert (refused.status, refused.code) == (401, "auth.invalid_token")
