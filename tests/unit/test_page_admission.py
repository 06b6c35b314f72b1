"""Who is let in, as decided from a request's head, from time and from names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.core.actor import Role
from tillbridge.web.authenticator import (
    AccessRules,
    Sessions,
    Throttle,
    Visitor,
    foreign_write,
    host_allowed,
    proxy_header,
    safe_return,
    source_of,
)

HOST = {"Host": "till.lan:8089"}
TIMES = AccessRules(session_idle_s=100, session_longest_s=250)


@pytest.mark.parametrize(
    ("host", "own", "allowed"),
    [
        ("127.0.0.1:8089", "", True),
        ("[::1]:8089", "", True),
        ("localhost", "", True),
        ("TILL.lan.:8089", "", True),
        ("192.168.1.5:8089", "192.168.1.5", True),
        ("192.168.1.6:8089", "192.168.1.5", False),
        ("evil.example:8089", "192.168.1.5", False),
        ("till.lan.evil.example", "", False),
        ("till.lan@evil.example", "", False),
        ("till.lan:80:80", "", False),
        ("", "192.168.1.5", False),
        ("", "", False),
    ],
)
def test_the_page_answers_to_known_names_only(host: str, own: str, allowed: bool) -> None:
    assert host_allowed(host, ["till.lan"], own) is allowed


@pytest.mark.parametrize(
    "name", "Forwarded x-forwarded-for X-Forwarded-Proto VIA X-Real-IP CF-Connecting-IP".split()
)
def test_a_proxy_is_known_by_its_headers(name: str) -> None:
    assert proxy_header({"Host": "127.0.0.1", name: "anything"}) == name
    assert proxy_header({"Host": "127.0.0.1", "User-Agent": "till"}) == ""


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://till.lan:8089"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Origin": "http://till.lan:8089"}, True),
        ({"Origin": "http://TILL.lan:8089"}, True),
        ({"Referer": "http://till.lan:8089/orders?x=1"}, True),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://till.lan:8089"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://till.lan"}, False),
        ({"Origin": "http://till.lan:8090"}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "http://evil.example", "Referer": "http://till.lan:8089/"}, False),
        ({"Referer": "http://evil.example/till.lan:8089"}, False),
        ({"Referer": "http://till.lan:8089@evil.example/"}, False),
        ({"Origin": "http://till.lan:port"}, False),
        ({}, False),
    ],
)
def test_a_write_comes_from_the_page_itself(headers: dict[str, str], ours: bool) -> None:
    assert (foreign_write({**HOST, **headers}) == "") is ours


def test_a_proxy_that_ends_tls_changes_only_the_scheme() -> None:
    assert foreign_write({"Host": "till.example", "Origin": "https://till.example"}) == ""


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "https://evil.example", ""])
def test_signing_in_leads_to_no_other_site(path: str) -> None:
    assert safe_return(path) == "/"


@given(st.text())
def test_the_way_back_is_a_path_of_the_page(path: str) -> None:
    back = safe_return(path)
    assert back.startswith("/")
    assert not back.startswith("//")
    assert "\\" not in back
    assert "\n" not in back


def test_slips_cost_nothing_until_there_are_many() -> None:
    throttle = Throttle()
    for _ in range(4):
        throttle.failed("10.0.0.5", "anna", 100.0)
    assert throttle.wait_s("10.0.0.5", "anna", 100.0) <= 0
    throttle.failed("10.0.0.5", "anna", 100.0)
    assert throttle.wait_s("10.0.0.5", "anna", 100.0) == 2.0
    assert throttle.wait_s("10.0.0.5", "ben", 100.0) <= 0
    throttle.worked("10.0.0.5", "anna")
    assert throttle.wait_s("10.0.0.5", "anna", 100.0) <= 0


@given(st.lists(st.tuples(st.sampled_from(["anna", "ben"]), st.integers(0, 30)), max_size=120))
def test_nobody_is_ever_locked_out_for_good(tries: list[tuple[str, int]]) -> None:
    throttle, now = Throttle(), 0.0
    for name, later in tries:
        now += later
        if throttle.wait_s("10.0.0.5", name, now) <= 0:
            throttle.failed("10.0.0.5", name, now)
        assert throttle.wait_s("10.0.0.5", name, now) <= 60.0
    assert throttle.wait_s("10.0.0.5", "anna", now + 60) <= 0


def test_all_names_together_are_throttled_too() -> None:
    throttle = Throttle()
    for number in range(30):
        throttle.failed("10.0.0.5", f"name {number}", 0.0)
    assert throttle.wait_s("10.0.0.5", "anna", 1.0) == 59.0
    assert throttle.wait_s("10.0.0.5", "anna", 60.0) <= 0


def test_a_stranger_who_guesses_locks_nobody_else_out() -> None:
    throttle = Throttle()
    for number in range(200):
        throttle.failed("10.0.0.66", "anna" if number % 2 else f"name {number}", 0.0)
    assert throttle.wait_s("10.0.0.66", "anna", 1.0) > 0
    assert throttle.wait_s("10.0.0.5", "anna", 1.0) <= 0


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("10.0.0.5", "10.0.0.5"),
        ("::ffff:10.0.0.5", "10.0.0.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
    ],
)
def test_one_network_is_one_source(address: str, source: str) -> None:
    assert source_of(address) == source


def test_the_throttle_remembers_a_bounded_number_of_names() -> None:
    throttle = Throttle()
    for number in range(2000):
        throttle.failed("10.0.0.5", f"name {number}", 0.0)
    assert len(throttle._names) == 500


def test_a_session_ends_by_idleness_and_by_age() -> None:
    sessions = Sessions(TIMES)
    anna = Visitor(Role.STAFF, "anna")
    secret = sessions.begin(anna, 0)
    assert sessions.visitor(secret, 90) == anna
    assert sessions.visitor(secret, 180) == anna
    assert sessions.visitor(secret, 240) == anna
    assert sessions.visitor(secret, 251) is None
    idle = sessions.begin(anna, 0)
    assert sessions.visitor(idle, 60, person=False) == anna
    assert sessions.visitor(idle, 101, person=False) is None


def test_a_session_ends_by_signing_out() -> None:
    sessions = Sessions(TIMES)
    secret = sessions.begin(Visitor(Role.LOOK, "anna"), 0)
    sessions.end(secret)
    assert sessions.visitor(secret, 1) is None
    assert sessions.visitor("", 1) is None


def test_sessions_are_bounded_and_keep_no_secret() -> None:
    sessions = Sessions(TIMES)
    secrets = [sessions.begin(Visitor(Role.LOOK, "anna"), 0) for _ in range(300)]
    assert len(sessions._open) == 200
    assert sessions.visitor(secrets[0], 1) is None
    assert sessions.visitor(secrets[-1], 1) is not None
    assert secrets[-1] not in repr(sessions._open)
