"""The wheel that users install, built from this very tree."""

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


@pytest.fixture
def wheel(tmp_path: Path) -> zipfile.Path:
    built = next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"]))
    return zipfile.Path(built)


def test_the_wheel_holds_everything_the_program_reads(wheel: zipfile.Path) -> None:
    """Templates, static files and migrations are read at run time: no import would miss them."""
    held = set(wheel.root.namelist())
    wanted = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "tillbridge").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - held == set()


def test_the_wheel_installs_the_command_and_the_built_in_adapter(wheel: zipfile.Path) -> None:
    metadata = next(path for path in wheel.iterdir() if path.name.endswith(".dist-info"))
    entry_points = (metadata / "entry_points.txt").read_text("utf-8")
    assert "tillbridge = tillbridge.cli:main" in entry_points
    assert "folder = tillbridge.pos.folder:ADAPTER" in entry_points
    assert "License-Expression: Apache-2.0" in (metadata / "METADATA").read_text("utf-8")
