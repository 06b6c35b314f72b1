"""An Odoo for each test: emulated, of each version, behind a real socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tillbridge_odoo.emulated.house import House
from tillbridge_odoo.rig import OdooRig


@pytest.fixture(params=[17, 18, 19])
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def house(version: int, tmp_path: Path) -> Iterator[House]:
    kind = type(f"Odoo{version}", (OdooRig,), {"version": version})
    rig: OdooRig = kind(tmp_path)
    house = House(rig)
    yield house
    house.close()
