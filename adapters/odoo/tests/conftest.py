"""An Odoo for each test: emulated, of each version, behind a real socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tillbridge_odoo.emulated.shop import Shop
from tillbridge_odoo.odoo import _LOGINS
from tillbridge_odoo.rig import OdooRig


@pytest.fixture(params=[17, 18, 19])
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture(autouse=True)
def _no_logins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log in anew: another test's Odoo may have had the same port."""
    monkeypatch.setattr(_LOGINS, "_known", {})


@pytest.fixture
def shop(version: int, tmp_path: Path) -> Iterator[Shop]:
    kind = type(f"Odoo{version}", (OdooRig,), {"version": version})
    rig: OdooRig = kind(tmp_path)
    shop = Shop(rig)
    yield shop
    shop.close()
