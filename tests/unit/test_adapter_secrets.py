"""A secret among an adapter's options is named as the bridge's own are, and masked once read."""

from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext, AdapterOptions
from tillbridge.adapter.secrets import Secret, read_secret
from tillbridge.core.redaction import masked


class Options(AdapterOptions):
    key: Secret


def context(folder: Path) -> AdapterContext:
    return AdapterContext(store="main", currency="EUR", location_id="loc", base_dir=folder)


def test_a_secret_is_read_from_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "till.key").write_text("from-a-file\n", "utf-8")
    monkeypatch.setenv("TILL_KEY", "from-the-environment")
    for said, wanted in (
        ({"file": "till.key"}, "from-a-file"),
        ({"env": "TILL_KEY"}, "from-the-environment"),
        ("as-it-stands", "as-it-stands"),
    ):
        options = Options.model_validate({"key": said})
        assert read_secret(options.key, "key", context(tmp_path)) == wanted


def test_a_secret_that_cannot_be_read_is_told_in_words(tmp_path: Path) -> None:
    options = Options.model_validate({"key": {"file": "gone.key"}})
    with pytest.raises(ValueError, match=r"key: the file .*gone\.key does not exist"):
        read_secret(options.key, "key", context(tmp_path))


def test_a_secret_stands_in_no_text_once_it_is_read(tmp_path: Path) -> None:
    options = Options.model_validate({"key": "tell-nobody-4711"})
    assert "4711" not in repr(options)
    read_secret(options.key, "key", context(tmp_path))
    assert "4711" not in masked("the till said: tell-nobody-4711 is wrong")
