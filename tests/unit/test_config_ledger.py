"""Where the ledger is: a URL that cannot be one is told without showing its password."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import make_url

from tests.unit.test_config_file import GOOD, faults, written
from tillbridge.config.loading import load
from tillbridge.config.secrets import database_url, database_url_fault, ledger_url_of
from tillbridge.config.toml import read_file
from tillbridge.core.errors import ConfigError
from tillbridge.core.redaction import masked

PASSWORD = "Pass-w0rd:of/the#base"
QUOTED = "Pass-w0rd%3Aof%2Fthe%23base"
URL = f"postgresql://bridge:{QUOTED}@db.example.net:5433/shop?sslmode=require"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILLBRIDGE_DATA_DIR", raising=False)


def test_without_a_url_the_ledger_is_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert load(path).ledger_url() is None
    assert load(path).ledger_key() is None
    assert ledger_url_of(path, read_file(path)[1]) is None


@pytest.mark.parametrize(
    "source", ['{ file = "url" }', '{ env = "BRIDGE_DATABASE" }', f'"{URL}"'], ids=str
)
def test_a_url_is_read_from_where_the_file_says_so_and_goes_to_sqlalchemy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    (tmp_path / "url").write_text(f"{URL}\n")
    monkeypatch.setenv("BRIDGE_DATABASE", URL)
    path = written(tmp_path, f"{GOOD}[ledger]\nurl = {source}\n")
    found = load(path).ledger_url()
    assert found is not None
    assert ledger_url_of(path, read_file(path)[1]) == found
    url = make_url(found)
    assert (url.drivername, url.password) == ("postgresql+psycopg", PASSWORD)
    assert (url.host, url.port, url.database) == ("db.example.net", 5433, "shop")


def test_what_is_read_is_masked_from_then_on(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("ZmVybmV0LWtleS1mb3ItdGVzdHMtb25seS1mb3JldmVyIQ==")
    text = f'{GOOD}[ledger]\nurl = "{URL}"\nkey = {{ file = "key" }}\n'
    loaded = load(written(tmp_path, text))
    loaded.ledger_url(), loaded.ledger_key()
    for secret in (PASSWORD, QUOTED, URL, "ZmVybmV0LWtleS1mb3ItdGVzdHMtb25seS1mb3JldmVyIQ=="):
        assert secret not in masked(f"could not open {secret} now")
    assert QUOTED not in json.dumps(loaded.settings.model_dump(mode="json"))
    assert QUOTED not in repr(loaded)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://bridge:hush-hush@db/shop", "must begin with postgresql://"),
        ("sqlite:///ledger.db", "must begin with postgresql://"),
        ("db.example.net/shop", "must begin with postgresql://"),
        ("postgresql://bridge:hush-hush@db.example.net", "names no database"),
        ("postgresql://bridge:hush-hush@db.example.net/", "names no database"),
        ("postgresql:///shop", "names no server"),
        ("postgresql://bridge:hush#hush@db/shop", "is not a URL"),
        ("postgresql://bridge:hush/hush@db/shop", "is not a URL"),
        ("postgresql://bridge:hush-hush@db:many/shop", "is not a URL"),
        ("postgresql://[::1/shop", "is not a URL"),
    ],
)
def test_a_url_that_cannot_be_one_is_a_fault_with_its_line(
    tmp_path: Path, url: str, words: str
) -> None:
    found = faults(tmp_path, f'{GOOD}[ledger]\nurl = "{url}"\n')
    assert words in found["ledger.url"]
    assert "line 16" in found["ledger.url"]
    assert "hush" not in str(found)
    with pytest.raises(ConfigError, match=words) as caught:
        database_url(url, "ledger.url")
    assert "hush" not in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///shop?host=/var/run/postgresql",
        "postgresql://bridge@a.example.net,b.example.net/shop?target_session_attrs=read-write",
        "postgresql://bridge:hush@a.example.net:5432,b.example.net:5433/shop",
        "postgresql://[fd00::1]:5432/shop",
    ],
)
def test_a_socket_and_a_cluster_are_servers_too(url: str) -> None:
    assert database_url_fault(url) is None
    assert database_url(url, "url") == url.replace("postgresql:", "postgresql+psycopg:")


def test_what_is_needed_to_open_the_vault_cannot_be_in_it(tmp_path: Path) -> None:
    found = faults(
        tmp_path, f"{GOOD}[ledger]\nurl = {{ vault = true }}\nkey = {{ vault = true }}\n"
    )
    assert found.keys() == {"ledger.url", "ledger.key"}


def test_a_daily_backup_of_a_server_is_a_contradiction(tmp_path: Path) -> None:
    text = GOOD.replace("[bridge]\n", '[bridge]\nbackup_at = "04:00"\n')
    found = faults(tmp_path, f'{text}[ledger]\nurl = "{URL}"\n')
    assert "its own tools" in found["bridge.backup_at"]


def test_a_file_without_stores_has_its_ledger_too(tmp_path: Path) -> None:
    from tillbridge.config.loading import load_to_run

    loaded = load_to_run(written(tmp_path, f'[ledger]\nurl = "{URL}"\n'))
    assert loaded.ledger_url() is not None


def test_an_unchecked_file_that_says_nonsense_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "[ledger]\nurl = { fil = 'x' }\n")
    with pytest.raises(ConfigError, match="where the database is"):
        ledger_url_of(path, read_file(path)[1])


@given(st.text(max_size=60))
def test_no_text_is_more_than_a_fault(text: str) -> None:
    fault = database_url_fault(f"postgresql://{text}")
    assert fault is None or all(fault)
