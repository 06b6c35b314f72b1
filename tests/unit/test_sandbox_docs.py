"""docs/sandbox.md is held to the code: every setting and every call of the control API is in it."""

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from tillbridge.sandbox import AppSeed, MerchantSeed, SandboxSettings, StoreSeed, create_app
from tillbridge.sandbox.middleware import Action, FaultRule
from tillbridge.sandbox.validation import SANDBOX_ONLY

GUIDE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text(encoding="utf-8")
SEEDS = (SandboxSettings, AppSeed, StoreSeed, MerchantSeed)


@pytest.mark.parametrize("name", sorted({entry.name for seed in SEEDS for entry in fields(seed)}))
def test_each_setting_is_described(name: str) -> None:
    assert f"`{name}`" in GUIDE


def control_calls() -> list[str]:
    calls = {
        f"{route.method} {route.resource.canonical}"
        for route in create_app().router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    return sorted(call for call in calls if "/_control/" in call)


async def test_each_control_call_is_described() -> None:
    missing = [call for call in control_calls() if f"`{call}`" not in GUIDE]
    assert missing == []


async def test_no_control_call_is_described_that_does_not_exist() -> None:
    described = re.findall(r"`((?:GET|POST|PUT|DELETE) /_control/[^`\s]*)`", GUIDE)
    assert sorted(set(described) - set(control_calls())) == []


@pytest.mark.parametrize("code", sorted(SANDBOX_ONLY))
def test_each_code_of_the_sandboxs_own_is_described(code: str) -> None:
    assert f"`{code}`" in GUIDE


@pytest.mark.parametrize("action", get_args(Action))
def test_each_fault_is_described(action: str) -> None:
    assert f"`{action}`" in GUIDE


@pytest.mark.parametrize("name", sorted(FaultRule.model_fields))
def test_each_field_of_a_fault_is_described(name: str) -> None:
    assert f"`{name}`" in GUIDE
