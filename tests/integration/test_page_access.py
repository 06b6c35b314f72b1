"""Who may see and do what on the page: passwords, roles, proxies, and other sites' forms."""

import base64
import re
from collections.abc import AsyncIterator

import pytest

from tests.support.page_harness import PASSWORD, PageHarness, page_harness, users
from tillbridge.core.actor import Role
from tillbridge.core.errors import BridgeError
from tillbridge.web.authenticator import COOKIE, AccessRules
from tillbridge.web.site.book import Action
from tillbridge.web.site.registry import EVERYTHING

PUSH = "/stores/main/menu/push"
RETRY = "/orders/ord_1/retry"
DONE = "/orders/ord_1/done"


@pytest.fixture
async def here() -> AsyncIterator[PageHarness]:
    """The page on its own machine, without passwords."""
    async with page_harness() as harness:
        yield harness


@pytest.fixture(scope="module")
def rules() -> AccessRules:
    return AccessRules(users=users(), allowed_hosts=("till.lan",))


@pytest.fixture
async def harness(rules: AccessRules) -> AsyncIterator[PageHarness]:
    """The page with a user of each role."""
    async with page_harness(rules) as made:
        yield made


def basic(name: str, password: str = PASSWORD) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


# -- on its own machine


async def test_an_action_asks_acts_and_tells_once(here: PageHarness) -> None:
    asked = await here.get(DONE)
    assert asked.status == 200
    assert "The bridge stops trying to send order ord_1 to the till." in asked.text
    looked = [("order", "ord_1")]
    assert here.control.asked == looked
    done = await here.post(DONE, {"how": "typed"})
    assert done.status == 303
    assert here.control.asked == [*looked, ("done", "ord_1", "typed")]
    shown = await here.get(done.headers["Location"])
    assert "Did done." in shown.text
    assert "Did done." not in (await here.get(done.headers["Location"])).text


@pytest.mark.parametrize(
    "path",
    [
        RETRY,
        PUSH,
        "/stores/main/menu/push-all",
        "/stores/main/tables/push",
        "/stores/main/resume",
        "/stores/main/tax",
    ],
)
async def test_what_can_be_undone_or_repeated_acts_at_once(here: PageHarness, path: str) -> None:
    assert (await here.get(path)).status == 405
    done = await here.post(path, {"back-to": "/"})
    assert done.headers["Location"].startswith("/?said=")
    assert 'class="flash good"' in (await here.get(done.headers["Location"])).text


@pytest.mark.parametrize(
    ("came_from", "back"),
    [
        ("{url}/?page=2", "/?page=2"),
        ("{url}/stores/main/menu/approve", "/menu"),
        ("{url}//evil.example/x", "/menu"),
        ("http://evil.example/x", "/menu"),
        ("", "/menu"),
    ],
)
async def test_saying_no_leads_back_to_where_one_was(
    here: PageHarness, came_from: str, back: str
) -> None:
    headers = {"Referer": came_from.format(url=here.url)} if came_from else {}
    page = await here.get("/stores/main/menu/approve", **headers)
    assert f'<a class="button" href="{back}">Go back</a>' in page.text


async def test_every_write_is_noted_with_who_and_what(here: PageHarness) -> None:
    await here.post(RETRY)
    await here.post(PUSH)
    assert here.trail.noted == [
        {"action": "order.retry", "who": "page", "store": "", "target": "ord_1", "ok": True},
        {"action": "menu.push", "who": "page", "store": "main", "target": "", "ok": True},
    ]


async def test_what_failed_is_told_with_its_remedy(here: PageHarness) -> None:
    here.control.failure = BridgeError("There is no order <x>.", fix="See which there are.")
    done = await here.post(RETRY)
    here.control.failure = None
    shown = await here.get(done.headers["Location"])
    assert "There is no order &lt;x&gt;." in shown.text
    assert "See which there are." in shown.text
    assert here.trail.noted[0]["ok"] is False


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example", "Sec-Fetch-Site": None},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": None, "Sec-Fetch-Site": "same-site"},
        {"Origin": "null", "Sec-Fetch-Site": None},
        {"Origin": None, "Sec-Fetch-Site": None},
    ],
)
@pytest.mark.parametrize("path", [RETRY, PUSH, "/login", "/logout"])
async def test_a_form_of_another_site_does_nothing(
    here: PageHarness, path: str, headers: dict[str, str | None]
) -> None:
    answer = await here.post(path, headers=headers)
    assert answer.status == 403
    assert "nothing was done" in answer.text
    assert here.control.asked == []
    assert here.trail.noted == []


async def test_every_post_of_the_registry_refuses_another_site(here: PageHarness) -> None:
    for action in filter(lambda each: isinstance(each, Action), EVERYTHING):
        path = re.sub(r"\{[a-z_]+\}", "x", action.path)
        assert (await here.post(path, headers={"Sec-Fetch-Site": "cross-site"})).status == 403
    assert here.control.asked == []


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "CF-Ray", "X-Real-IP"])
@pytest.mark.parametrize("path", ["/", "/api/status", "/metrics", "/events"])
async def test_through_a_tunnel_nobody_is_the_machines_own(
    here: PageHarness, path: str, header: str
) -> None:
    answer = await here.get(path, **{header: "203.0.113.9"})
    assert answer.status == 403
    assert "tillbridge password" in answer.text
    assert (await here.post(RETRY, headers={header: "x"})).status == 403
    assert here.control.asked == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
async def test_other_methods_are_refused(here: PageHarness, method: str) -> None:
    async with here.session.request(method, here.url + RETRY) as answer:
        assert answer.status == 405
    assert here.control.asked == []


async def test_a_page_cannot_be_written_to(here: PageHarness) -> None:
    assert (await here.post("/")).status == 405


async def test_what_is_not_there_says_so_in_words(here: PageHarness) -> None:
    answer = await here.get("/no/such/page")
    assert answer.status == 404
    assert "There is no such page." in answer.text
    assert (await here.get("/static/../listener.py")).status == 404
    assert (await here.get("/static/%2e%2e%2flistener.py")).status == 404


# -- with passwords


@pytest.mark.parametrize("path", ["/", RETRY, "/login?next=/orders"])
async def test_without_signing_in_there_is_only_the_question_for_it(
    harness: PageHarness, path: str
) -> None:
    answer = await harness.get(path)
    if path.startswith("/login"):
        assert 'name="password"' in answer.text
    else:
        assert answer.status == 303
        assert answer.headers["Location"].startswith("/login?next=%2F")


@pytest.mark.parametrize("path", ["/api/status", "/metrics", "/events"])
async def test_programs_are_asked_for_a_password_too(harness: PageHarness, path: str) -> None:
    assert (await harness.get(path)).status == 401
    if path != "/events":
        assert (await harness.get(path, Authorization=basic("lou"))).status == 200
        assert (await harness.get(path, Authorization=basic("lou"))).status == 200
    assert (await harness.get(path, Authorization=basic("lou", "wrong"))).status == 401
    assert (await harness.get(path, Authorization="Basic %%%")).status == 401


async def test_signing_in_leads_back_and_signing_out_ends_it(harness: PageHarness) -> None:
    answer = await harness.sign_in("tea", to="/stores/main/connect")
    assert answer.status == 303
    assert answer.headers["Location"] == "/stores/main/connect"
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Secure" not in cookie
    assert (await harness.get("/")).status == 200
    secret = re.search(rf"{COOKIE}=([^;]+)", cookie)
    assert secret is not None
    await harness.post("/logout")
    harness.session.cookie_jar.update_cookies({COOKIE: secret[1]})
    assert (await harness.get("/")).status == 303
    assert [each["action"] for each in harness.trail.noted] == ["page.signed_in", "page.signed_out"]
    assert harness.trail.noted[0]["who"] == "page:tea"


async def test_behind_https_the_cookie_is_for_https_only(harness: PageHarness) -> None:
    sent = {"name": "tea", "password": PASSWORD}
    answer = await harness.post("/login", sent, {"X-Forwarded-Proto": "https"})
    assert "Secure" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("name", "password"), [("tea", "not the one"), ("nobody", PASSWORD), ("", "")]
)
async def test_a_wrong_name_and_a_wrong_password_read_alike(
    harness: PageHarness, name: str, password: str
) -> None:
    answer = await harness.sign_in(name, password)
    assert answer.status == 401
    assert "The name or the password is wrong." in answer.text
    assert password == "" or password not in answer.text
    assert "Set-Cookie" not in answer.headers


async def test_guessing_is_slowed_down_and_never_shut_out(harness: PageHarness) -> None:
    for _ in range(5):
        assert (await harness.sign_in("tea", "wrong")).status == 401
    answer = await harness.sign_in("tea")
    assert answer.status == 429
    assert answer.headers["Retry-After"]
    harness.clock.forward(61)
    assert (await harness.sign_in("tea")).status == 303


async def test_a_session_that_is_over_leads_to_the_password(harness: PageHarness) -> None:
    await harness.sign_in("lou")
    harness.clock.forward(14_000)
    assert (await harness.get("/")).status == 200
    harness.clock.forward(14_000)
    # What refreshes itself is no sign of a person.
    assert (await harness.get("/", **{"X-Live": "1"})).status == 200
    harness.clock.forward(1_000)
    assert (await harness.get("/", **{"X-Live": "1"})).status == 401
    assert (await harness.get("/")).status == 303


@pytest.mark.parametrize(
    ("name", "role"), [("lou", Role.LOOK), ("sam", Role.STAFF), ("tea", Role.TECHNICIAN)]
)
async def test_each_role_may_do_its_own(harness: PageHarness, name: str, role: Role) -> None:
    await harness.sign_in(name)
    for each in EVERYTHING:
        path = re.sub(r"\{[a-z_]+\}", "x", each.path)
        if isinstance(each, Action):
            allowed = (await harness.post(path)).status == 303
        else:
            allowed = (await harness.get(path)).status != 403
        assert allowed is (role >= each.role), (name, each.path)


async def test_a_button_that_one_may_not_press_is_not_shown(harness: PageHarness) -> None:
    from dataclasses import replace

    from tillbridge.core.problems import OpenProblem

    held = OpenProblem("menu.held", "main", "menu", 0, {"detail": "much is gone"})
    harness.control.facts = replace(harness.control.facts, problems=(held,))
    await harness.sign_in("sam")
    assert "/stores/main/menu/dismiss" not in (await harness.get("/")).text
    await harness.sign_in("tea")
    assert "/stores/main/menu/dismiss" in (await harness.get("/")).text


async def test_a_tunnel_is_welcome_where_passwords_are_asked_for(harness: PageHarness) -> None:
    await harness.sign_in("tea")
    assert (await harness.get("/", **{"X-Forwarded-For": "203.0.113.9"})).status == 200


@pytest.mark.parametrize(
    ("host", "known"), [("till.lan:8089", True), ("till.lan", True), ("evil.example", False)]
)
async def test_names_of_the_network_are_those_configured(
    harness: PageHarness, host: str, known: bool
) -> None:
    assert (await harness.get("/login", Host=host)).status == (200 if known else 421)


async def test_commands_need_no_page_password(harness: PageHarness) -> None:
    token = {"Authorization": "Bearer control-token-0123456789"}
    assert (await harness.post("/control/status", headers=token)).status == 200
    wrong = {"Authorization": basic("tea")}
    assert (await harness.post("/control/status", headers=wrong)).status == 401


@pytest.mark.parametrize("path", ["/login", PUSH])
@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "application/x-www-form-urlencoded; charset=no-such-one",
        "multipart/form-data; boundary=x; charset=no-such-one",
    ],
)
async def test_what_no_browser_sends_is_a_bad_request(
    path: str, content_type: str, harness: PageHarness
) -> None:
    if path == PUSH:
        await harness.sign_in("tea")
    headers = {"Origin": harness.url, "Content-Type": content_type}
    async with harness.session.post(
        harness.url + path, data=b"name=anna\xff", headers=headers, allow_redirects=False
    ) as answer:
        assert answer.status in {303, 400, 401}
        assert answer.headers["Server"] == "tillbridge"


async def test_a_defect_of_a_page_shows_nothing_of_itself(
    here: PageHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_arguments: object) -> object:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(here.control, "status", broken)
    answer = await here.get("/api/status")
    assert answer.status == 500
    assert "date value" not in answer.text
    assert answer.headers["Server"] == "tillbridge"
    assert answer.headers["X-Frame-Options"] == "DENY"
