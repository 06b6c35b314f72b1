"""docs/adapters/reference.md is what the code says; versions of the API are looked at first."""

import re
import warnings
from pathlib import Path

import pytest

from tests.support import adapter_reference as reference
from tillbridge import adapter as api
from tillbridge.adapter import API_VERSION, Adapter, AdapterOptions, registration
from tillbridge.core.errors import ConfigError
from tillbridge.pos.loader import find_adapter

DOCS = Path(__file__).resolve().parents[2] / "docs/adapters"


class NoOptions(AdapterOptions):
    pass


OLD = Adapter("old", "From the past", NoOptions, lambda options, context: object(), 0)


def test_the_reference_is_made_from_the_code() -> None:
    assert (DOCS / "reference.md").read_text("utf-8") == reference.text(), "run: make reference"


def test_the_reference_tells_every_name_of_the_api() -> None:
    page = reference.text()
    told = set(re.findall(r"^### `(\w+)", page, re.MULTILINE))
    assert set(api.__all__) - told == {"API_VERSION"}
    assert " at 0x" not in page
    assert "" not in re.findall(r"^### .*\n\n(.*)$", reference.text(), re.MULTILINE), (
        "something has no docstring"
    )


def test_the_policy_names_the_version_there_is() -> None:
    assert f"`API_VERSION`: **{API_VERSION}**" in (DOCS / "policy.md").read_text("utf-8")


def test_an_adapter_for_an_old_version_is_refused_with_both_numbers() -> None:
    with pytest.raises(
        ConfigError, match=f"version 0 of the adapter API. This bridge has version {API_VERSION}"
    ):
        find_adapter(f"{__name__}:OLD")


def test_an_adapter_for_a_deprecated_version_works_and_says_until_when(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registration, "OLD_API_VERSIONS", {0: "3.0"})
    with pytest.warns(DeprecationWarning, match=r"works until 3\.0"):
        assert find_adapter(f"{__name__}:OLD") is OLD


def test_an_adapter_for_this_version_is_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_adapter("folder").api_version == API_VERSION
