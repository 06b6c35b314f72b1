from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    AdapterOptions,
    ReadsCatalogue,
    ReadsTables,
    WritesTickets,
)
from tillbridge.core import i18n
from tillbridge.core.errors import ConfigError
from tillbridge.pos.loader import find_adapter, find_adapters, open_adapter, open_found


class NewerOptions(AdapterOptions):
    pass


NEWER = Adapter("newer", "From the future", NewerOptions, lambda options, context: object(), 99)
NO_ADAPTER = object()


@pytest.fixture
def context(tmp_path: Path) -> AdapterContext:
    return AdapterContext(store="main", currency="USD", location_id="loc-1", base_dir=tmp_path)


def install(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda group: entries)


def test_what_is_built_in_is_there_even_where_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    assert list(find_adapters()) == ["folder", "process"]


def test_an_adapter_has_the_capabilities_its_options_switch_on(context: AdapterContext) -> None:
    with_menu = open_adapter("folder", {"menu": "menu.csv"}, context)
    assert isinstance(with_menu, ReadsCatalogue)
    assert not isinstance(with_menu, ReadsTables)
    orders_only = open_adapter("folder", {"orders_dir": "orders"}, context, table="orders")
    assert isinstance(orders_only, WritesTickets)
    assert not isinstance(orders_only, ReadsCatalogue)


@pytest.mark.parametrize(
    ("options", "key", "remedy"),
    [
        ({"menue": "menu.csv"}, "stores.main.pos.menue", "menu"),
        ({"menu": "menu.csv", "columns": {"nam": "X"}}, "stores.main.pos.columns.nam", "name"),
        ({"menu": "menu.csv", "heartbeat_s": 0}, "stores.main.pos.heartbeat_s", "heartbeat"),
        ({"menu": "menu.csv", "encoding": "utf-9"}, "stores.main.pos.encoding", "utf-8"),
        ({"menu": "menu.csv", "delimiter": ",,"}, "stores.main.pos.delimiter", "tab"),
        ({"menu": "menu.xml"}, "stores.main.pos", "csv"),
        ({"menu": "menu.json", "addons": "a.csv"}, "stores.main.pos", "addons"),
    ],
)
def test_a_wrong_option_is_named_with_its_key_and_what_to_do(
    context: AdapterContext, options: dict[str, object], key: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_adapter("folder", options, context)
    assert caught.value.text.startswith(key)
    assert remedy in str(caught.value)


def test_an_unknown_adapter_is_told_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError) as caught:
        find_adapter("foldre")
    assert "'folder'" in caught.value.fix


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (f"{__name__}:NEWER", "version 99"),
        (f"{__name__}:NO_ADAPTER", "does not register"),
        ("no_such_module_at_all:ADAPTER", "cannot be loaded"),
    ],
)
def test_an_adapter_that_does_not_fit_is_told_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch, target: str, said: str
) -> None:
    install(monkeypatch, EntryPoint("newer", target, i18n.ADAPTERS))
    with pytest.raises(ConfigError, match=said):
        find_adapter("newer")
    assert list(find_adapters()) == ["folder", "process"]


def test_what_is_wrong_with_options_as_a_whole_begins_with_words(context: AdapterContext) -> None:
    with pytest.raises(ConfigError) as failed:
        open_found(find_adapter("folder"), {"menu": "ITM.DBF"}, context)
    assert failed.value.text.startswith("menu: ITM.DBF must end in .csv")
