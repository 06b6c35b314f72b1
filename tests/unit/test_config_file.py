"""A configuration file that is wrong is told in full, in words, with lines."""

import os
from pathlib import Path

import pytest

from tillbridge.config.loading import load
from tillbridge.config.toml import ConfigFaults, data_dir_of
from tillbridge.core.errors import ConfigError

GOOD = """\
[bridge]
data_dir = "data"
[service]
base_url = "http://127.0.0.1:9000/v2"
client_id = "app_123"
client_secret = "sup3r-s3cret-value"
[receiver]
public_url = "https://store-17.example.net"
[stores.main]
location_id = "loc-1"
currency = "USD"
[stores.main.pos]
adapter = "folder"
menu = "export/menu.csv"
"""


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TILLBRIDGE_DATA_DIR", raising=False)
    monkeypatch.chdir(tmp_path)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "bridge.toml"
    path.write_text(text, "utf-8")
    return path


def faults(tmp_path: Path, text: str) -> dict[str, str]:
    """Each fault of the file by its key."""
    with pytest.raises(ConfigFaults) as caught:
        load(written(tmp_path, text))
    return {fault.key: fault.sentence("bridge.toml") for fault in caught.value.faults}


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_relative_paths_count_from_the_files_folder(tmp_path: Path) -> None:
    loaded = load(written(tmp_path, GOOD))
    assert loaded.data_dir == tmp_path / "data"
    assert loaded.base_dir == tmp_path


def test_the_environment_overrides_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILLBRIDGE_DATA_DIR", str(tmp_path / "elsewhere"))
    assert load(written(tmp_path, GOOD)).data_dir == tmp_path / "elsewhere"


# -- a file that names no data folder


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of installed bridges."""
    folder = tmp_path / "var"
    monkeypatch.setattr("tillbridge.config.toml.SYSTEM_DATA_DIR", folder)
    return folder


def nameless(tmp_path: Path, *, uid: int = 1000) -> Path:
    path = written(tmp_path, changed('data_dir = "data"\n', ""))
    if os.geteuid() == 0:
        os.chown(path, uid, uid)
    return path


def ledger_in(folder: Path) -> Path:
    folder.mkdir()
    (folder / "ledger.db").touch()
    return folder


def test_the_data_is_beside_the_file(tmp_path: Path, system: Path) -> None:
    assert load(nameless(tmp_path)).data_dir == tmp_path / "data" != system


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of root's")
def test_the_data_of_roots_file_is_the_systems(tmp_path: Path, system: Path) -> None:
    assert load(nameless(tmp_path, uid=0)).data_dir == system


def test_an_installed_configuration_has_the_systems_data(
    tmp_path: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "stat", None)  # whoever owns the file
    assert data_dir_of(Path("/etc/tillbridge/bridge.toml"), {}) == system


def test_a_ledger_that_is_there_is_gone_on_with(tmp_path: Path, system: Path) -> None:
    ledger_in(system)
    assert load(nameless(tmp_path)).data_dir == system


def test_the_file_decides_between_two_ledgers(tmp_path: Path, system: Path) -> None:
    beside = ledger_in(tmp_path / "data")
    path = nameless(tmp_path, uid=0)
    assert load(path).data_dir == beside
    ledger_in(system)
    with pytest.raises(ConfigError, match="There are two databases") as caught:
        load(path)
    assert str(system) in caught.value.text
    assert f'data_dir = "{beside}"' in caught.value.fix
    assert load(written(tmp_path, GOOD)).data_dir == beside


def test_the_current_folders_file_is_found(tmp_path: Path) -> None:
    written(tmp_path, GOOD)
    assert load().path == tmp_path / "bridge.toml"


def test_a_missing_file_says_where_it_was_looked_for() -> None:
    with pytest.raises(ConfigError, match=r"bridge\.toml, /etc/tillbridge/bridge\.toml"):
        load()


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "bridge.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load(path).settings.stores


def test_a_file_in_another_encoding_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bridge.toml"
    path.write_bytes(GOOD.encode("utf-16"))
    with pytest.raises(ConfigError, match="UTF-8"):
        load(path)


def test_an_unknown_key_names_the_nearest_one_and_its_line(tmp_path: Path) -> None:
    told = faults(tmp_path, GOOD + "[stores.main.menu]\nsetle_ms = 3\n")
    assert told["stores.main.menu.setle_ms"] == (
        "bridge.toml, line 16: stores.main.menu.setle_ms is not a setting of [stores.main.menu]. "
        'Did you mean "settle_ms"?'
    )


def test_a_key_in_the_wrong_table_is_sent_home(tmp_path: Path) -> None:
    told = faults(tmp_path, changed("[service]", "[service]\nsettle_ms = 3"))
    assert told["service.settle_ms"].endswith("It belongs in [stores.NAME.menu].")


def test_an_unknown_table_is_told(tmp_path: Path) -> None:
    assert 'Did you mean "receiver"?' in faults(tmp_path, GOOD + "[reciever]\n")["reciever"]


def test_an_order_setting_with_a_slip_is_no_adapter_option(tmp_path: Path) -> None:
    told = faults(tmp_path, GOOD + '[stores.main.orders]\nacept = "when_written"\n')
    assert 'Did you mean "accept"?' in told["stores.main.orders.acept"]


def test_all_faults_are_told_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    text = changed('client_id = "app_123"\n', "").replace('"USD"', '"usd"') + "[bogus]\n"
    with pytest.raises(ConfigFaults) as caught:
        load(written(tmp_path, text))
    assert [fault.key for fault in caught.value.faults] == [
        "service.client_id",
        "stores.main.currency",
        "bogus",
    ]
    assert [fault.line for fault in caught.value.faults] == [3, 10, 14]


@pytest.mark.parametrize(
    ("line", "key", "words"),
    [
        ('timeout_s = "15"', "service.timeout_s", "must be a number without quotes, not text"),
        ("max_attempts = 1.5", "service.max_attempts", "must be a whole number"),
        ("max_attempts = 0", "service.max_attempts", "must be 1 or more"),
        ("timeout_s = 0", "service.timeout_s", "must be more than 0"),
        ("timeout_s = inf", "service.timeout_s", "must be a finite number"),
        ("redirect_uri = 3", "service.redirect_uri", "must be text in quotes, not a number"),
        ('redirect_uri = "ftp://x"', "service.redirect_uri", "begins with http:// or https://"),
        ('redirect_uri = "http://a:99999/"', "service.redirect_uri", "a port from 0 to 65535"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(
    tmp_path: Path, line: str, key: str, words: str
) -> None:
    assert words in faults(tmp_path, changed("[service]", f"[service]\n{line}"))[key]


@pytest.mark.parametrize(
    ("listen", "right"),
    [
        ("127.0.0.1:0", True),
        ("[::1]:8088", True),
        ("::1:8088", False),
        ("127.0.0.1", False),
        ("127.0.0.1:70000", False),
    ],
)
def test_a_listener_is_an_address_and_a_port(tmp_path: Path, listen: str, right: bool) -> None:
    text = changed("[receiver]", f'[receiver]\nlisten = "{listen}"')
    if right:
        assert load(written(tmp_path, text)).settings.receiver.listen == listen
    else:
        assert "receiver.listen" in faults(tmp_path, text)


def test_a_stores_name_must_fit_an_address(tmp_path: Path) -> None:
    told = faults(tmp_path, GOOD.replace("stores.main", "stores.Main"))
    assert "[stores.main]" in told["stores.Main"]


def test_a_file_without_stores_is_told(tmp_path: Path) -> None:
    assert "stores" in faults(tmp_path, GOOD[: GOOD.index("[stores.main]")])


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ('[bridge]\ndata_dir = "C:\\POS"\n', 2, "single quotes"),
        ("[bridge]\ndata_dir = \u201cdata\u201d\n", 2, "(U+201C)"),
        ('[bridge]\ndata_dir\u00a0= "data"\n', 2, "U+00A0"),
        ("[bridge]\ndata_dir = here\n", 2, "in quotes"),
        ("[bridge\n", 1, "Check that line"),
        ('[bridge]\nlog_level = "info"\nlog_level = "info"\n', 3, "twice"),
    ],
)
def test_a_slip_in_toml_has_its_line_and_a_remedy(
    tmp_path: Path, text: str, line: int, remedy: str
) -> None:
    told = faults(tmp_path, text)[""]
    assert f"line {line}: is not valid TOML" in told
    assert remedy in told


@pytest.mark.parametrize(
    "secret",
    [
        '{ fil = "sup3r-s3cret-value" }',
        '["sup3r-s3cret-value"]',
        '{ file = "sup3r-s3cret-value", env = "sup3r-s3cret-value" }',
    ],
)
def test_an_error_never_shows_the_secret(tmp_path: Path, secret: str) -> None:
    told = faults(tmp_path, changed('"sup3r-s3cret-value"', secret))
    assert any(key.startswith("service.client_secret") for key in told)
    assert "sup3r" not in str(told)


def test_the_loaded_settings_never_show_the_secret(tmp_path: Path) -> None:
    loaded = load(written(tmp_path, GOOD))
    assert "sup3r" not in repr(loaded)
    assert "sup3r" not in loaded.settings.model_dump_json()
    assert loaded.client_secret().get_secret_value() == "sup3r-s3cret-value"


CONTRADICTIONS = [
    ("[receiver]", '[receiver]\nlisten = "127.0.0.1:8089"', "status_page.listen", "another port"),
    ("[receiver]", '[receiver]\nlisten = "0.0.0.0:8089"', "status_page.listen", "another port"),
    (
        "[bridge]",
        '[status_page]\nlisten = "0.0.0.0:8089"\n[bridge]',
        "status_page.listen",
        "SSH tunnel",
    ),
    (
        "[service]",
        '[service]\nredirect_uri = "https://bridge.example.net/cb"',
        "service.redirect_uri",
        "127.0.0.1:8089",
    ),
    (
        "[service]",
        '[service]\nredirect_uri = "http://127.0.0.1:8088/cb"',
        "service.redirect_uri",
        "status_page.listen",
    ),
    (
        "[service]",
        '[service]\nredirect_uri = "http://127.0.0.1:8089/metrics"',
        "service.redirect_uri",
        "a different path",
    ),
    ("http://127.0.0.1:9000", "http://ordering.example.com", "service.base_url", "https://"),
    (
        "[service]",
        "[service]\nbackoff_first_s = 70",
        "service.backoff_first_s",
        "backoff_cap_s",
    ),
    (
        "[stores.main.pos]",
        '[stores.main.orders]\naccept = "when_confirmed"\n[stores.main.pos]',
        "stores.main.orders.accept",
        "auto_accept_orders = false",
    ),
    (
        "[stores.main.pos]",
        '[stores.main.fallback]\nadapter = "printer"\nafter_s = 120\n[stores.main.pos]',
        "stores.main.fallback.after_s",
        "raise accept_within_s",
    ),
    (
        "[stores.main.pos]",
        'menu_sync_direction = "none"\nmenu = { max_removed_percent = 5 }\n[stores.main.pos]',
        "stores.main.menu.max_removed_percent",
        "pos_to_quiqqy or bidirectional",
    ),
    (
        "[stores.main]",
        '[stores.other]\nlocation_id = "loc-1"\ncurrency = "USD"\npos.adapter = "x"\n[stores.main]',
        "stores.main.location_id",
        "the store other",
    ),
]


@pytest.mark.parametrize(("old", "new", "key", "words"), CONTRADICTIONS)
def test_contradictory_settings_are_errors_with_a_remedy(
    tmp_path: Path, old: str, new: str, key: str, words: str
) -> None:
    text = changed(old, new)
    if key.endswith("orders.accept"):
        text = text.replace('currency = "USD"', 'currency = "USD"\nauto_accept_orders = true')
    told = faults(tmp_path, text)
    assert words in told[key]
    assert ", line " in told[key] or key.startswith("status_page")


def test_two_listeners_may_both_take_any_free_port(tmp_path: Path) -> None:
    text = changed("[receiver]", '[receiver]\nlisten = "127.0.0.1:0"')
    text += '[status_page]\nlisten = "127.0.0.1:0"\n'
    assert load(written(tmp_path, text)).settings.status_page.listen == "127.0.0.1:0"


def test_a_community_is_of_stores_that_there_are_and_stands_once(tmp_path: Path) -> None:
    hall = '[communities.hall]\ncommunity_id = "com_1"\nstores = ["main"]\n'
    loaded = load(written(tmp_path, GOOD + hall))
    assert loaded.settings.communities["hall"].stores == ["main"]
    found = faults(
        tmp_path,
        GOOD + hall.replace('"main"', '"man"') + '[communities.other]\ncommunity_id = "com_1"\n',
    )
    assert "Choose from: main." in found["communities.hall.stores[0]"]
    assert "the community hall" in found["communities.other.community_id"]


def test_a_slip_in_a_communitys_table_is_told(tmp_path: Path) -> None:
    text = GOOD + '[communities.hall]\ncommunity_id = "com_1"\nsync = 5\n'
    assert 'Did you mean "sync_s"?' in faults(tmp_path, text)["communities.hall.sync"]
