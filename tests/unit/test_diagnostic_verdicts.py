"""What each check makes of the facts it has gathered."""

import asyncio
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import Health
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConsentLost, Unauthorised, Unreachable
from tillbridge.core.redaction import learn_secret
from tillbridge.diagnostics.check import Check, Finding, Level, Role, ok
from tillbridge.diagnostics.checks import (
    Checkup,
    bridge,
    ledger,
    public,
    service,
    store,
    tls,
)
from tillbridge.diagnostics.network import Exchange, Lookup
from tillbridge.service.types import Integration

DAY_MS = 86_400_000
NOW = 1_795_000_000_000


# -- DNS


@pytest.mark.parametrize(
    ("found", "role", "level", "words"),
    [
        (Lookup("a.example", ("93.184.215.14",)), "service", "ok", "93.184.215.14"),
        (Lookup("a.example", (), "no_name", "?"), "service", "failed", "not known"),
        (Lookup("a.example", (), "dns_timeout", "?"), "public", "failed", "looked up"),
        (Lookup("a.example", ("10.0.0.9",)), "public", "warning", "split DNS"),
        (Lookup("a.example", ("10.0.0.9",)), "service", "warning", "split DNS"),
        (Lookup("127.0.0.1", ("127.0.0.1",)), "public", "ok", "an IP address"),
        (Lookup("till.lan", ("10.0.0.9",)), "public", "ok", "10.0.0.9"),
    ],
)
def test_a_look_up(found: Lookup, role: Role, level: str, words: str) -> None:
    finding = public.names_verdict(found, role)
    assert (finding.level, words in finding.text) == (level, True), finding


# -- TLS


def shaken(issuer: str, days: float = 60, **more: object) -> tls.Handshake:
    fields: dict = {
        "trusted": True,
        "issuer": [issuer],
        "from_ms": NOW - 9 * DAY_MS,
        "ends_ms": NOW + int(days * DAY_MS),
    }
    return tls.Handshake("ordering.example.com", **{**fields, **more})


@pytest.mark.parametrize(
    ("seen", "role", "level", "words", "fix"),
    [
        (shaken("Let's Encrypt, R11"), "service", "ok", "Let's Encrypt", ""),
        (shaken("Let's Encrypt", 9), "service", "warning", "expires in 9 days", "renew"),
        (
            shaken("FortiGate CA"),
            "service",
            "warning",
            "intercepts the connection",
            "exception for ordering",
        ),
        (
            shaken("Fortinet, FGT60", trusted=False, refusal="self-signed certificate in chain"),
            "service",
            "failed",
            "intercepts the connection",
            "exception for ordering.example.com",
        ),
        (
            shaken("Some Company Proxy", trusted=False, refusal="unable to get local issuer"),
            "service",
            "failed",
            "Some Company Proxy",
            "exception for ordering.example.com",
        ),
        (
            shaken("Acme Corp Root"),
            "service",
            "warning",
            "not by a known public authority",
            "exception",
        ),
        (
            shaken("Let's Encrypt", -1, trusted=False, refusal="certificate has expired"),
            "service",
            "failed",
            "not valid today",
            "date and time",
        ),
        (
            shaken("localhost", trusted=False, refusal="self-signed", self_signed=True),
            "public",
            "failed",
            "not trusted",
            "tillbridge reach",
        ),
        (
            tls.Handshake("a.example", trouble="timed out"),
            "service",
            "failed",
            "timed out",
            "firewall",
        ),
        (tls.Handshake("127.0.0.1", "http"), "service", "ok", "this machine", ""),
        (tls.Handshake("a.example", "http"), "public", "warning", "uses http", "tillbridge reach"),
    ],
)
def test_a_certificate(seen: tls.Handshake, role: Role, level: str, words: str, fix: str) -> None:
    finding = tls.verdict(seen, role, NOW)
    assert finding.level == level, finding
    assert words in finding.text
    assert fix in finding.fix


@pytest.mark.parametrize(
    "issuer",
    [
        "DigiCert Inc", "Google Trust Services", "Amazon", "Sectigo Limited", "ZeroSSL",
        "GlobalSign nv-sa", "Internet Security Research Group", "Cloudflare, Inc.",
    ],
)  # fmt: skip
def test_a_public_authority_is_no_firewall(issuer: str) -> None:
    assert tls.verdict(shaken(issuer), "service", NOW).level is Level.OK


# -- the service and the clock

ENVELOPE = '{"error": {"code": "auth.invalid_token", "message": "no"}}'


@pytest.mark.parametrize(
    ("seen", "level", "words"),
    [
        (Exchange(status=401, body=ENVELOPE), "ok", "answers"),
        (Exchange(status=404, body=ENVELOPE), "ok", "answers"),
        (Exchange(status=503, body="<html>"), "failed", "a failure of its own"),
        (Exchange(status=302, body=""), "failed", "other than the ordering service"),
        (
            Exchange(status=200, body="<html>Sign in to the guest network"),
            "failed",
            "other than the",
        ),
        (Exchange(trouble="timeout", detail="timed out"), "failed", "cannot be reached"),
    ],
)
def test_an_answer_of_the_service(seen: Exchange, level: str, words: str) -> None:
    finding = service.answer_verdict(seen)
    assert (finding.level, words in finding.text) == (level, True), finding


def dated(date: str, off_s: float) -> Exchange:
    sent = 1_445_412_480_000 + int(off_s * 1000)
    return Exchange(
        status=401, headers={"date": date}, sent_ms=sent, received_ms=sent + 400, rtt_s=0.4
    )


@pytest.mark.parametrize(
    ("off_s", "level", "words"),
    [
        (0, "ok", "clock is right"),
        (25, "ok", "clock is right"),
        (-25, "ok", "clock is right"),
        (60, "warning", "59 seconds ahead"),
        (-60, "warning", "60 seconds behind"),
        (3600, "warning", "60 minutes ahead"),
        (-3 * 86_400, "warning", "3 days behind"),
    ],
)
def test_a_clock_that_is_off(off_s: float, level: str, words: str) -> None:
    finding = service.clock_verdict(dated("Wed, 21 Oct 2015 07:28:00 GMT", off_s))
    assert (finding.level, words in finding.text) == (level, True), finding


@pytest.mark.parametrize("date", ["", "yesterday", "Wed, 99 Oct 2015 07:28:00 GMT"])
def test_a_service_without_a_date_says_nothing_of_the_clock(date: str) -> None:
    assert service.clock_verdict(dated(date, 0)).level is Level.SKIPPED


@given(
    off_ms=st.integers(-10_000_000, 10_000_000),
    way_out=st.integers(0, 5000),
    way_back=st.integers(0, 5000),
    fraction=st.integers(0, 999),
)
def test_the_skew_is_never_told_larger_than_it_is(
    off_ms: int, way_out: int, way_back: int, fraction: int
) -> None:
    sent = NOW - NOW % 1000 + fraction
    there = sent + way_out + off_ms  # the service's clock when it answers
    told = there - there % 1000
    skew_ms = service.skew_s(told, sent, sent + way_out + way_back) * 1000
    assert abs(skew_ms) <= abs(off_ms)
    assert abs(off_ms - skew_ms) <= way_out + way_back + 1000


# -- store


@pytest.mark.parametrize(
    ("failure", "days", "level", "words"),
    [
        (None, 5.0, "ok", "in 5 days"),
        (None, 1.0, "warning", "expires in 24 hours"),
        (None, -1.0, "warning", "that date is over"),
        (
            ConsentLost("Withdrawn.", code="auth.consent_revoked", status=403),
            5,
            "failed",
            "withdrawn",
        ),
        (Unauthorised("No.", code="auth.invalid_token", status=401), 5, "failed", "refuses"),
        (Unreachable("Nobody there."), 5, "failed", "could not be checked"),
    ],
)
def test_a_consent(failure: ConsentLost | None, days: float, level: str, words: str) -> None:
    finding = store.consent_verdict("main", failure, days, 2)
    assert (finding.level, words in finding.text) == (level, True), finding


URL = "https://a.example/webhooks/main"


@pytest.mark.parametrize(
    ("changed", "level", "words"),
    [
        ({}, "ok", "is connected"),
        ({"webhook_url": "https://b.example/webhooks/main"}, "failed", "b.example"),
        ({"status": "suspended"}, "failed", "suspended"),
        ({"external_store_id": "loc-9"}, "failed", "loc-9"),
        ({"menu_sync_direction": "none"}, "warning", "none"),
    ],
)
def test_an_integration(changed: dict, level: str, words: str) -> None:
    fields = {
        "store_id": "st_1", "webhook_url": URL, "status": "active", "external_store_id": "loc-1",
        "menu_sync_direction": "pos_to_quiqqy",
    }  # fmt: skip
    finding = store.integration_verdict(
        "main",
        Integration(**{**fields, **changed}),
        webhook_url=URL,
        direction="pos_to_quiqqy",
        location_id="loc-1",
    )
    assert (finding.level, words in finding.text) == (level, True), finding


def test_a_till() -> None:
    assert store.verdict("folder", Health(online=True), asked=True).level is Level.OK
    away = store.verdict("folder", Health(online=False, detail="no folder"), asked=True)
    assert away.level is Level.FAILED
    assert "no folder" in away.text
    assert "cannot see" in store.verdict("x", Health(online=True), asked=False).text


# -- the machine

GIB = 2**30


@pytest.mark.parametrize(
    ("changed", "level", "words"),
    [
        ({}, "ok", "10 GiB"),
        ({"free": 50 * 2**20}, "warning", "50 MiB"),
        ({"free": 500 * 2**20}, "warning", "500 MiB"),
        ({"read_only": True}, "failed", "read-only"),
        ({"may_write": False}, "failed", "may not write"),
        ({"kind": "nfs4"}, "warning", "network share"),
        ({"used_by_us": 6 * GIB}, "warning", "grown"),
    ],
)
def test_a_disk(changed: dict, level: str, words: str) -> None:
    fields = {"path": "/data", "free": 10 * GIB, "total": 20 * GIB, "kind": "ext4"}
    finding = ledger.disk_verdict(ledger.Disk(**{**fields, **changed}))
    assert (finding.level, words in finding.text) == (level, True), finding


def test_the_longest_mount_above_a_folder_counts() -> None:
    mounts = [("/", "ext4"), ("/srv", "cifs"), ("/srv/local", "xfs"), ("/srvother", "nfs")]
    assert ledger.kind_of(Path("/srv/data"), mounts) == "cifs"
    assert ledger.kind_of(Path("/srv/local/data"), mounts) == "xfs"
    assert ledger.kind_of(Path("/srvother2"), mounts) == "ext4"


@pytest.mark.parametrize(
    ("changed", "running", "level", "words"),
    [
        ({}, True, "ok", "intact"),
        ({"exists": False}, False, "skipped", "no database yet"),
        ({"failure": "file is not a database"}, False, "failed", "not a database"),
        ({"sound": False, "faults": ["page 3"]}, True, "failed", "page 3"),
        ({"sound": None}, True, "ok", "intact"),
        ({"writable": False}, True, "failed", "cannot save"),
        ({"schema": "0009"}, False, "failed", "newer"),
        ({"schema": "0001"}, False, "ok", "next start"),
        ({"schema": "0001"}, True, "failed", "0001"),
        ({"wal_size": GIB}, True, "warning", "1024 MiB"),
    ],
)
def test_a_ledger(changed: dict, running: bool, level: str, words: str) -> None:
    facts = ledger.LedgerFacts(**{"schema": "0003", "newest": "0003", "size": 2**20, **changed})
    finding = ledger.ledger_verdict(facts, running=running)
    assert (finding.level, words in finding.text) == (level, True), finding


def test_a_python_at_its_end_is_told() -> None:
    found = {"python": "3.11.9", "tillbridge": "1", "sqlite": "3"}
    assert bridge.versions_verdict(found, (3, 11), "2026-11").level is Level.OK
    assert bridge.versions_verdict(found, (3, 11), "2027-11").level is Level.WARNING
    assert bridge.versions_verdict(found, (3, 99), "2040-01").level is Level.OK
    assert sys.version_info[:2] in bridge._PYTHON_ENDS


@pytest.mark.parametrize(
    ("shown", "level"),
    [
        ("NTP=yes\nNTPSynchronized=yes\n", "ok"),
        ("NTP=yes\nNTPSynchronized=no\n", "warning"),
        ("NTP=no\nNTPSynchronized=no\n", "warning"),
        ("", "skipped"),
    ],
)
def test_the_time_server(shown: str, level: str) -> None:
    assert bridge.time_sync_verdict(shown).level == level


def test_the_service_manager() -> None:
    assert bridge.manager_verdict({}, running=False).level is Level.SKIPPED
    assert "nothing starts it again" in bridge.manager_verdict({}, running=True).text
    environment = {"INVOCATION_ID": "x", "WATCHDOG_USEC": "30000000"}
    watched = bridge.manager_verdict(environment, running=True)
    assert watched.details["watchdog_s"] == 30


def test_files_with_secrets_are_for_one_user(tmp_path: Path) -> None:
    closed, readable = tmp_path / "closed", tmp_path / "readable"
    for path, mode in ((closed, 0o600), (readable, 0o644)):
        path.write_text("x")
        path.chmod(mode)
    found = list(bridge.open_files([closed, readable, tmp_path / "missing"]))
    assert found == [(str(readable), 0o644)]
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    assert list(bridge.open_files([folder])) == [(str(folder), 0o777)]
    finding = bridge.secret_files_verdict(found)
    assert "644" in finding.text
    assert f"chmod go= {readable}" in finding.fix
    assert bridge.secret_files_verdict([]).level is Level.OK


def test_ports() -> None:
    free = [bridge.Port("receiver", "127.0.0.1:1", "refused")]
    taken = [bridge.Port("receiver", "127.0.0.1:1")]
    assert bridge.ports_verdict(free, running=False).level is Level.OK
    assert bridge.ports_verdict(taken, running=True).level is Level.OK
    assert "already in use" in bridge.ports_verdict(taken, running=False).text
    assert "Nothing answers" in bridge.ports_verdict(free, running=True).text
    assert bridge.ports_verdict([], running=True).level is Level.SKIPPED


def test_a_bridge_that_runs() -> None:
    assert bridge.lag_verdict(0.0, 0, 0).level is Level.OK
    assert bridge.lag_verdict(2.0, 0, 0).level is Level.WARNING
    assert bridge.lag_verdict(0.0, 3, 900).level is Level.FAILED


# -- the examination


async def test_a_check_that_hangs_or_breaks_hangs_and_breaks_no_other() -> None:
    learn_secret("hunter2-hunter2")
    never = asyncio.Event()

    async def hangs() -> Finding:
        while not never.is_set():
            try:
                await never.wait()
            except asyncio.CancelledError:
                continue  # deaf
        return ok("late")

    async def breaks() -> Finding:
        msg = "password is hunter2-hunter2"
        raise RuntimeError(msg)

    async def fine() -> Finding:
        return ok("fine", seen=["hunter2-hunter2"])

    checkup = Checkup(
        [
            Check("a", "the first", hangs, limit_s=0.1),
            Check("b", "the second", breaks),
            Check("c", "the third", fine, "main"),
        ],
        Clock(),
    )
    assert checkup.so_far()["done"] is False
    report = await asyncio.wait_for(checkup.run(), 5)
    never.set()
    assert [each["level"] for each in report["results"]] == ["failed", "failed", "ok"]
    assert "no answer within 0.1 seconds" in report["results"][0]["text"]
    assert report["ok"] is False
    assert report["done"] is True
    assert "hunter2" not in str(report)
    assert report["results"][2]["store"] == "main"


def test_files_of_adapters_secrets_are_among_those_looked_at() -> None:
    options = {"api_key": {"file": "odoo.key"}, "password": {"env": "X"}, "menu": "menu.csv"}
    assert list(bridge.secret_files_of(options)) == ["odoo.key"]
