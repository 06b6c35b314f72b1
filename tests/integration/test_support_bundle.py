"""The support bundle: secrets and customers planted in every place, and found in no file of it.

The search is not the bundle's own: it decodes whatever looks like base64, hex, an address or JSON
in each file, and looks for the plain text.
"""

import base64
import binascii
import html
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

import pytest
from sqlalchemy import Connection, insert

from tests.support.ledger_harness import delivery, opened
from tillbridge.config.loading import load
from tillbridge.core.log import LOG_FOLDER, LogFiles
from tillbridge.diagnostics.bundle import Bundle, gather
from tillbridge.ledger import audit
from tillbridge.ledger.backend import SQLite
from tillbridge.ledger.models import AcceptedTable, CommunityOrder, OrderRow, PastProblem
from tillbridge.ledger.problems import store_past

NOW = 1_800_000_000_000

# Known on this machine: the bundle must find them however they are written. All invented.
SECRETS = {
    "client secret": "cs-Zp4!kQ9/wE+7",
    "SMTP password": "mail pass wörd 9",
    "alert webhook's user": "hookuser77",
    "alert webhook's password": "h00k:pass",
    "alert webhook's path": "T0K3N-in-the-path",
    "alert webhook's secret": "sign-these-alerts-42",
    "apprise token": "aPPriseT0ken88",
    "apprise password": "appr1sePassw",
    "heartbeat token": "5f1c2a90-hb-41d7",
    "page password hash": "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo",
    "adapter's key": "till-key-0815",
    "adapter's PIN": "739105",
    "adapter's nested password": "d33p-in-the-options",
    "adapter's unnamed token": "abcd1234efgh5678ijkl",
    "adapter's secret in a file": "filed-away-2207",
    "adapter's secret in the environment": "set-in-env-4410",
    "fallback's token": "fallback-tok-9911",
    "a program's option": "given-to-the-program-5",
    "a program's environment": "odd name, odd value 8",
    "a secret of before the last change": "the-former-hook-55",
    "userinfo of the till's address": "tilluser:till%40pass",
    "access token": "at.eyJub3QiOiJhIn0-9f8e7d",
    "refresh token": "rt_0123456789abcdef",
    "webhook secret": "whsec_old+new/==42",
    "community secret": "com-signing-77-88",
    "reporting token": "rep0rting-t0ken-x",
    "control token": "ctl-tok-31337-abc",
    "ledger key": base64.urlsafe_b64encode(b"k" * 32).decode(),
    "environment variable": "env-only-s3cret",
    "userinfo in the environment": "proxypass55",
    "table code": "qrt_7Yq2",
    "table address": "https://eat.example.net/t/7Yq2-long-code",
}
PERSONAL = {
    "name": "Zoë O'Hara-Łukasz",
    "phone": "+1 (555) 867-5309",
    "e-mail": "zoe.o.hara@example.org",
    "street": "12 Larch Lane, back door",
    "instructions": 'no "nuts" & ring <twice>',
    "customer id": "cus_4471xyz",
    "other name": "Bartholomew Quux",
    "parent's phone": "5559998888",
}
# Known to nobody here: their form gives them away.
BY_FORM = {
    "session cookie": ("Cookie: a=b; tillbridge_session={}", "s3ss10n-c00kie-value"),
    "Authorization header": ("POST /x -> 401, sent Authorization: Token {}", "foreign-hdr-tok"),
    "bearer": ("header was Bearer {}", "b3ar3r-of-nobody"),
    "password in an exception": ("connect failed: password={} refused", "exc-pass-word"),
    "userinfo in an error": ("cannot reach https://u:{}@till.local/api", "err-userinfo-pw"),
    "JSON Web Token": ("got {}", "eyJhbGciOi1.eyJzdWIiOiIx.c2lnbmF0dXJl"),
    "foreign token": ("key {} is not valid", "sk1Live9XyZ0aBcD3eFgH5iJkL"),
    "private key": ("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", "MIIEvQIBADAN"),
    "somebody's e-mail": ("rejected by {}", "stranger@mail.example.com"),
}
CONFIG = """
[bridge]
data_dir = "data"
[service]
base_url = "https://ordering.example.com/v2"
client_id = "app_123"
client_secret = {{ file = "client_secret" }}
[receiver]
public_url = "https://store.example.net"
[status_page.users.anna]
role = "technician"
password = {hash}
[alerts]
heartbeat_url = "https://hc.example.net/ping/{heartbeat}"
[alerts.email]
host = "mail.example.net"
username = "bridge"
password = {mail}
sender = "bridge@example.net"
to = ["owner@example.net"]
[alerts.webhook]
url = "https://{user}:{password}@hooks.example.net/services/{path}"
secret = "{signing}"
[alerts.apprise]
urls = ["tgram://{apprise}/chat", "mailto://someone:{appr_pw}@mail.example.net"]
[stores.main]
location_id = "loc-1"
currency = "USD"
[stores.main.pos]
adapter = "acme"
base_url = "https://{userinfo}@till.local/api"
menu = "menu.csv"
api_key = "{key}"
pin = {pin}
site = "{token}"
session = {{ file = "pos.token" }}
password = {{ env = "ACME_PLAIN" }}
[stores.main.pos.login]
user = "clerk"
password = "{deep}"
[stores.main.orders]
adapter = "process"
command = ["till"]
env = ["ACME_ODD"]
options = {{ api_key = "{program}" }}
[stores.main.fallback]
adapter = "printer"
token = "{fallback}"
[communities.hall]
community_id = "com_1"
"""


@dataclass
class Shop:
    config: Path
    status: dict[str, Any]
    doctor: dict[str, Any]


def written(text: str) -> list[str]:
    """The ways in which a careless program writes a text."""
    data = text.encode()
    return [
        text,
        text.upper() if text.isascii() else text,
        f"user:{text}",
        quote(text, safe=""),
        quote_plus(text),
        html.escape(text),
        repr(text),
        data.hex(),
        base64.b64encode(data).decode(),
        base64.urlsafe_b64encode(b"user:" + data + b"!").decode(),
        base64.b64encode(b"xy" + data).decode(),
        json.dumps({"deep": [json.dumps({"deeper": text})]}),
    ]


def everything() -> list[str]:
    found = [form for text in (*SECRETS.values(), *PERSONAL.values()) for form in written(text)]
    return [*found, *(pattern.format(value) for pattern, value in BY_FORM.values())]


def fill(connection: Connection) -> None:
    customer = {
        "customer_id": PERSONAL["customer id"],
        "name": PERSONAL["name"],
        "phone": PERSONAL["phone"],
        "email": PERSONAL["e-mail"],
    }
    payload = {
        "id": "ord_1",
        "customer": customer,
        "delivery_address": {"street_address": PERSONAL["street"], "country": "US"},
        "special_instructions": PERSONAL["instructions"],
        "items": [{"product_name": "Dish"}],
    }
    connection.execute(
        insert(OrderRow).values(
            store="main",
            order_id="ord_1",
            payload=json.dumps(payload),
            received_at=NOW,
            ticket="written",
            desired_state="accepted",
            service_state="accepted",
            updated_at=NOW,
        )
    )
    body = json.dumps({"data": {"customer": {"name": PERSONAL["other name"]}}}).encode()
    SQLite.record(connection, [delivery(body=body)])
    connection.execute(
        insert(CommunityOrder).values(
            community="communities/hall",
            order_id="par_1",
            status="created",
            payload=json.dumps({"customer": {"phone": PERSONAL["parent's phone"]}}),
            received_at=NOW,
            changed_at=NOW,
        )
    )
    connection.execute(
        insert(AcceptedTable).values(
            store="main",
            external_id="t1",
            name="Table 1",
            qr_token=SECRETS["table code"],
            qr_url=SECRETS["table address"],
        )
    )
    for number, form in enumerate(everything()):
        act = audit.Act("order.done", "page:anna", "staff", "main", form, {"said": form, form: 1})
        audit.append(connection, act, at=NOW + number)
        store_past(
            connection,
            PastProblem(
                code="pos.offline", store="main", subject=form, since=NOW, until=NOW + 1 + number
            ),
        )


@pytest.fixture
async def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    data = tmp_path / "data"
    data.mkdir()
    (data / "ledger.key").write_text(SECRETS["ledger key"] + "\n")
    (tmp_path / "client_secret").write_text(SECRETS["client secret"])
    (tmp_path / "pos.token").write_text(SECRETS["adapter's secret in a file"] + "\n")
    monkeypatch.setenv("ACME_PLAIN", SECRETS["adapter's secret in the environment"])
    monkeypatch.setenv("ACME_ODD", SECRETS["a program's environment"])
    monkeypatch.setenv("ACME_API_TOKEN", SECRETS["environment variable"])
    monkeypatch.setenv(
        "HTTPS_PROXY_OF_ACME", f"http://p:{SECRETS['userinfo in the environment']}@proxy:3128"
    )
    monkeypatch.setenv("MAIL_PASS_FILE_TEXT", SECRETS["SMTP password"])
    config = tmp_path / "bridge.toml"
    config.write_text(
        CONFIG.format(
            hash=json.dumps(SECRETS["page password hash"]),
            heartbeat=SECRETS["heartbeat token"],
            program=SECRETS["a program's option"],
            fallback=SECRETS["fallback's token"],
            mail=json.dumps(SECRETS["SMTP password"], ensure_ascii=False),
            user=SECRETS["alert webhook's user"],
            password=quote(SECRETS["alert webhook's password"], safe=""),
            path=SECRETS["alert webhook's path"],
            signing=SECRETS["alert webhook's secret"],
            apprise=SECRETS["apprise token"],
            appr_pw=SECRETS["apprise password"],
            userinfo=SECRETS["userinfo of the till's address"],
            key=SECRETS["adapter's key"],
            pin=SECRETS["adapter's PIN"],
            token=SECRETS["adapter's unnamed token"],
            deep=SECRETS["adapter's nested password"],
        ),
        "utf-8",
    )
    async with opened(data) as ledger:
        await ledger.write(fill)
        vault = ledger.vault
        tokens = {
            "access_token": SECRETS["access token"],
            "refresh_token": SECRETS["refresh token"],
            "expires_at": NOW,
        }
        vault.put("main/tokens", json.dumps(tokens))
        secret = {"secret": SECRETS["webhook secret"], "since_ms": NOW}
        vault.put("main/webhook_secrets", json.dumps([secret]))
        vault.put("communities/hall/secrets", json.dumps([SECRETS["community secret"]]))
        vault.put("app_tokens", json.dumps({"tokens": [{"t": SECRETS["reporting token"]}]}))
    (data / "control.json").write_text(
        json.dumps({"url": "http://127.0.0.1:1", "token": SECRETS["control token"]})
    )
    kept = LogFiles(data / LOG_FOLDER, 4_000_000)
    for form in everything():
        line = {"event": "pos.failed", "level": "error", "at": "2026-11-21T19:02:00.000Z"}
        # Written as if the daemon's own masking had missed every one of them.
        kept.write(json.dumps({**line, "detail": form, "exception": f"Traceback\n  {form}"}))
    everywhere = {form: {"text": form, "all": [form]} for form in everything()}
    doctor = {
        "results": [
            {"name": "till", "store": "main", "text": form, "details": {"said": form}}
            for form in everything()
        ]
    }
    return Shop(config, {"problems": [everywhere], "bridge": everywhere}, doctor)


def made(shop: Shop) -> Bundle:
    """The bundle of a bridge that started with another secret than the file has now."""
    now = shop.config.read_text("utf-8")
    ours, former = (
        SECRETS[name] for name in ("alert webhook's secret", "a secret of before the last change")
    )
    shop.config.write_text(now.replace(ours, former), "utf-8")
    started_with = load(shop.config)
    shop.config.write_text(now, "utf-8")
    return gather(started_with, shop.status, shop.doctor, now_ms=NOW)


def files_of(bundle: Bundle) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(bundle.zipped())) as archive:
        return {Path(name).name: archive.read(name).decode("utf-8") for name in archive.namelist()}


def readings(text: str) -> Iterator[str]:
    """What somebody who wants to can read in a text."""
    seen = {text}
    waiting = [text]
    while waiting:
        each = waiting.pop()
        yield each.lower()
        for other in (
            unquote_plus(each),
            html.unescape(each),
            each.replace("\\\\", "\\"),
            unescaped(each),
        ):
            if other not in seen and len(seen) < 12:
                seen.add(other)
                waiting.append(other)
    for run in re.findall(r"[A-Za-z0-9+/_-]{6,}", text):
        for start in range(4):
            piece = run[start:].translate(str.maketrans("-_", "+/"))
            piece = piece[: len(piece) - len(piece) % 4] if len(piece) % 4 == 1 else piece
            try:
                yield (
                    base64.b64decode(piece + "=" * (-len(piece) % 4))
                    .decode("utf-8", "replace")
                    .lower()
                )
            except (binascii.Error, ValueError):
                continue
    for run in re.findall(r"(?:[0-9a-f]{2}){4,}", text):
        yield bytes.fromhex(run).decode("utf-8", "replace").lower()


def unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-f]{4})|\\(.)", lambda m: chr(int(m[1], 16)) if m[1] else m[2], text)


def test_no_planted_secret_and_no_customer_is_in_any_file(shop: Shop) -> None:
    files = files_of(made(shop))
    sought = {
        **SECRETS,
        **PERSONAL,
        **{name: value for name, (_pattern, value) in BY_FORM.items()},
        "decoded userinfo": "till@pass",
        "digits of the phone": "15558675309",
    }
    assert len(sought) >= 25
    found = []
    for name, text in files.items():
        told = "\n".join(readings(f"{name}\n{text}"))
        found += [f"{what} in {name}" for what, value in sought.items() if value.lower() in told]
    assert not found, "\n".join(found)


def test_what_helps_is_still_there(shop: Shop) -> None:
    files = files_of(made(shop))
    assert set(files) == {
        "README.txt", "versions.json", "configuration.json", "status.json", "doctor.json",
        "problems.json", "adapters.json", "ledger.json", "audit.json", "files.json", "log.jsonl",
    }  # fmt: skip
    told = {name: json.loads(text) for name, text in files.items() if name.endswith(".json")}
    settings = told["configuration.json"]["settings"]
    assert settings["service"]["base_url"] == "https://ordering.example.com/v2"
    assert settings["stores"]["main"]["pos"]["menu"] == "menu.csv"
    assert settings["alerts"]["email"]["host"] == "mail.example.net"
    assert told["versions.json"]["installed"]["aiohttp"]
    assert told["ledger.json"]["rows"]["orders"] == 1
    assert told["ledger.json"]["schema_version"]
    assert told["adapters.json"]["stores"]["main"]["adapter"] == "acme"
    assert told["audit.json"]["broken"] is None
    assert told["audit.json"]["last"][0]["action"] == "order.done"
    assert {"ledger.db", "ledger.vault"} <= {each["name"] for each in told["files.json"]}
    lines = [json.loads(line) for line in files["log.jsonl"].splitlines()]
    assert len(lines) == len(everything())
    assert {line["event"] for line in lines} == {"pos.failed"}
    for name in files:
        if name != "README.txt":
            assert name in files["README.txt"]


def test_the_preview_tells_each_file_with_its_size_and_first_lines(shop: Shop) -> None:
    bundle = made(shop)
    told = {each["name"]: each for each in bundle.preview()}
    files = files_of(bundle)
    assert list(told) == list(files)
    for name, text in files.items():
        assert told[name]["size"] == len(text.encode())
        assert 1 <= len(told[name]["first"]) <= 3
        assert all(len(line) <= 100 for line in told[name]["first"])


def test_a_ledger_that_is_not_there_or_no_ledger_is_told_and_costs_nothing_else(
    shop: Shop,
) -> None:
    ledger = shop.config.parent / "data" / "ledger.db"
    for extra in ("-wal", "-shm"):
        ledger.with_name(ledger.name + extra).unlink(missing_ok=True)
    ledger.write_bytes(b"no database at all" * 500)
    assert "error" in json.loads(files_of(made(shop))["ledger.json"])
    ledger.unlink()
    files = files_of(made(shop))
    assert "error" in json.loads(files["ledger.json"])
    assert json.loads(files["versions.json"])["installed"]
    assert not ledger.exists()
