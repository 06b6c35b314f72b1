"""bridge.toml is changed as a careful person would: only what is meant, with a way back."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tillbridge.config.writing import (
    changed,
    difference,
    edited,
    put_back,
    replace_file,
)
from tillbridge.core.errors import ConfigError

TEXT = """\
# Our till, set up by Anna in May.
[bridge]
data_dir = "data"   # on the second disk

[service]
base_url = "http://127.0.0.1:9000/v2"
client_secret = "hush-hush-hush"  # the old one

[stores.main]
location_id = "loc-1"
currency = "USD"

[stores.main.pos]
adapter = "folder"
menu = 'export\\menu.csv'
columns = { name = "Bezeichnung" }
"""

KEYS = st.sampled_from(["a", "b", "main", "pos", "x-y", "menu name"])
VALUES = st.one_of(
    st.text(max_size=20),
    st.integers(-(2**31), 2**31),
    st.booleans(),
    st.dictionaries(KEYS, st.text(max_size=5), max_size=3),
    st.none(),
)


@pytest.mark.parametrize("end", ["\n", "", "\n\n", "\r\n"])
def test_an_empty_line_is_before_a_table_that_is_added(end: str) -> None:
    old = f'[bridge]\ndata_dir = "data"\n\n[stores.main]\ncurrency = "USD"{end}'
    new = edited(old, {("stores", "main", "menu", "approve_first"): True, ("fleet", "name"): "a"})
    for header in ("[stores.main.menu]", "[fleet]"):
        before = new.replace("\r\n", "\n").partition(header)[0]
        assert before.endswith("\n\n"), new
        assert not before.endswith("\n\n\n"), new


def test_everything_else_stays_as_it_was_written() -> None:
    new = edited(
        TEXT,
        {
            ("service", "client_secret"): {"vault": True},
            ("service", "client_id"): "app_123",
            ("stores", "main", "pos", "menu"): None,
            ("receiver", "public_url"): "https://till.example.net",
        },
    )
    assert "# Our till, set up by Anna in May." in new
    assert "# on the second disk" in new
    assert 'columns = { name = "Bezeichnung" }' in new
    assert "client_secret = {vault = true}" in new
    assert "menu =" not in new
    assert "[receiver]\n" in new
    assert "hush" not in new


def test_a_file_of_nothing_becomes_one_that_a_person_would_write() -> None:
    new = edited(
        "",
        {
            ("service", "base_url"): "https://x.example/v2",
            ("stores", "main", "location_id"): "1",
            ("stores", "main", "pos", "adapter"): "folder",
        },
    )
    assert [line for line in new.splitlines() if line.startswith("[")] == [
        "[service]",
        "[stores.main]",
        "[stores.main.pos]",
    ]


@example({("stores", "main", "pos", "a"): "1", ("stores", "main", "x-y"): True})
@given(
    st.dictionaries(
        st.one_of(
            st.tuples(st.just("service"), KEYS),
            st.tuples(st.just("stores"), st.just("main"), KEYS),
            st.tuples(st.just("stores"), st.just("main"), st.just("orders"), KEYS),
            st.tuples(st.just("stores"), st.just("other"), st.just("pos"), KEYS),
        ),
        VALUES,
        max_size=5,
    )
)
def test_the_new_text_says_what_was_meant_and_nothing_else(changes: dict[Any, Any]) -> None:
    try:
        new = edited(TEXT, changes)
    except (ConfigError, AttributeError):
        # A key that is a value and cannot also be a table, as nobody has it.
        assert any(path[:3] == ("stores", "main", "pos") for path in changes) or any(
            path[2:3] == ("orders",) and len(path) > 3 for path in changes
        )
        return
    assert tomllib.loads(new) == changed(tomllib.loads(TEXT), changes)


def test_the_difference_is_shown_without_a_secret() -> None:
    new = edited(TEXT, {("service", "client_secret"): {"vault": True}})
    lines = difference(TEXT, new)
    assert lines == [
        " [service]",
        '-client_secret = "[secret]"',
        "+client_secret = {vault = true}  # the old one",
    ]
    assert difference(TEXT, TEXT) == []


def test_a_copy_of_the_old_file_is_kept_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "bridge.toml"
    path.write_text(TEXT, "utf-8")
    path.chmod(0o640)
    copy = replace_file(path, "[bridge]\n")
    second = replace_file(path, "[service]\n")
    assert copy is not None
    assert second is not None
    assert copy != second
    assert (path.read_text(), copy.read_text(), second.read_text()) == (
        "[service]\n",
        TEXT,
        "[bridge]\n",
    )
    assert path.stat().st_mode & 0o777 == copy.stat().st_mode & 0o777 == 0o640
    put_back(path, copy)
    assert path.read_text() == TEXT
    assert len(list(tmp_path.iterdir())) == 3


def test_what_a_link_names_is_changed_and_not_the_link(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    real = tmp_path / "etc" / "bridge.toml"
    real.write_text(TEXT, "utf-8")
    link = tmp_path / "bridge.toml"
    link.symlink_to(real)
    replace_file(link, "[bridge]\n")
    assert link.is_symlink()
    assert real.read_text() == "[bridge]\n"


def test_a_file_that_cannot_be_replaced_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bridge.toml"
    path.write_text(TEXT, "utf-8")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left") as refused:
        replace_file(path, "[bridge]\n")
    assert "by hand" in refused.value.fix
    assert path.read_text() == TEXT
    assert not (tmp_path / ".bridge.toml.new").exists()
