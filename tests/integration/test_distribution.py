"""The wheel that users install, built from this very tree."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return Path(next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])))


def test_the_wheel_holds_everything_the_program_reads(wheel: Path) -> None:
    """Templates, static files and migrations are read at run time: no import would miss them."""
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "tillbridge").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - held == set()


def test_the_wheel_brings_the_guides_and_their_pictures(wheel: Path, tmp_path: Path) -> None:
    """An installed program finds them in itself, where no clone is."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        "from tillbridge.web.site import help_pages as guides\n"
        "made = [guides.guide(name) for name in guides.NAMES]\n"
        "print(guides.GUIDES, [each.html.count('<img ') for each in made])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    shown = (ROOT / "docs/restaurant.md").read_text("utf-8").count("](images/guide/")
    assert done.stdout == f"{tmp_path}/site/tillbridge/web/guides [{shown}, 0]\n"
    assert (tmp_path / "site/tillbridge/web/guides/in-the-shop.html").is_file()


def test_the_wheel_installs_the_command_and_the_built_in_adapter(wheel: Path) -> None:
    metadata = next(
        path for path in zipfile.Path(wheel).iterdir() if path.name.endswith(".dist-info")
    )
    entry_points = (metadata / "entry_points.txt").read_text("utf-8")
    assert "tillbridge = tillbridge.cli:main" in entry_points
    assert "folder = tillbridge.pos.folder:ADAPTER" in entry_points
    assert "License-Expression: Apache-2.0" in (metadata / "METADATA").read_text("utf-8")
