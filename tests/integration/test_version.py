"""What the program says of itself, and of the ledger that it finds."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import tillbridge
from tests.support.ledger_harness import opened
from tillbridge import SPECIFICATION, ledger_schemas
from tillbridge.adapter import API_VERSION

ROOT = Path(__file__).resolve().parents[2]


def said(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tillbridge", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A folder with a configuration and the ledger it speaks of."""
    text = (ROOT / "config" / "bridge.toml").read_text("utf-8")
    text = text.replace('# data_dir = "/var/lib/tillbridge"', 'data_dir = "data"')
    (tmp_path / "bridge.toml").write_text(text, "utf-8")
    async with opened(tmp_path / "data"):
        pass
    return tmp_path


def test_the_short_form_tells_what_it_fits_together_with(tmp_path: Path) -> None:
    assert said(tmp_path, "--version").strip() == (
        f"tillbridge {tillbridge.__version__} (ledger schema {ledger_schemas()[-1]}, adapter API "
        f"{API_VERSION}, service specification {SPECIFICATION})"
    )


def test_the_ledger_on_disk_is_compared(folder: Path) -> None:
    told = json.loads(said(folder, "version", "--json"))
    assert told["ledger_on_disk"] == told["ledger_schema"] == ledger_schemas()[-1]
    assert told["adapters"]["folder"] == tillbridge.__version__
    assert "matches this version" in said(folder, "version")


@pytest.mark.parametrize(
    ("schema", "words"), [("0001", "backs it up and updates it to"), ("9999", "tillbridge restore")]
)
def test_what_the_next_start_does_to_the_ledger_is_told(
    folder: Path, schema: str, words: str
) -> None:
    with closing(sqlite3.connect(folder / "data" / "ledger.db")) as ledger:
        ledger.execute("UPDATE alembic_version SET version_num = ?", (schema,))
        ledger.commit()
    assert words in said(folder, "version")


def test_without_a_configuration_the_program_alone_is_told(tmp_path: Path) -> None:
    assert json.loads(said(tmp_path, "version", "--json"))["ledger_on_disk"] is None
