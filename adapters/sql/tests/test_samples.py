"""The samples for each profile are right, but for the password that nobody has."""

import tomllib
from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext, WritesTickets
from tillbridge_sql.adapter import ADAPTER

SAMPLES = sorted((Path(__file__).parents[1] / "samples").glob("*.toml"))


def test_there_is_a_sample_for_each_profile() -> None:
    profiles = Path(__file__).parents[1] / "src/tillbridge_sql/profiles"
    assert [each.stem for each in SAMPLES] == sorted(each.stem for each in profiles.glob("*.sql"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_opens(sample: Path, tmp_path: Path) -> None:
    options = tomllib.loads(sample.read_text("utf-8"))["stores"]["main"]["pos"]
    del options["adapter"]
    (tmp_path / "till-password").write_text("never-used-here\n")
    pos = ADAPTER.open(
        ADAPTER.options.model_validate(options), AdapterContext("main", "EUR", "loc", tmp_path)
    )
    assert isinstance(pos, WritesTickets)
