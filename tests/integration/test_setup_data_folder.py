"""What the set-up writes names the data folder that the bridge works in."""

from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.ledger_harness import opened
from tillbridge.core.clock import Clock
from tillbridge.daemon.reload import RestartController
from tillbridge.setup.draft import Draft
from tillbridge.setup.proposal import ChangeSignal, SetupContext, proposed


@pytest.mark.parametrize(
    ("folder", "text", "line"),
    [
        ("data", "", 'data_dir = "data"'),
        ("../elsewhere", "", 'data_dir = "{base}/elsewhere"'),
        ("data", '[bridge]\nlog_level = "info"\n', 'data_dir = "data"'),
        ("data", '[bridge]\ndata_dir = "other"\n', 'data_dir = "other"'),
    ],
)
async def test_the_file_names_the_data_folder(
    tmp_path: Path, folder: str, text: str, line: str
) -> None:
    path = tmp_path / "shop" / "bridge.toml"
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    async with opened((path.parent / folder).resolve()) as ledger:
        place = SetupContext(
            path, ledger, Clock(), RestartController(), "", ChangeSignal(), cast("Any", None)
        )
        proposal = await proposed(place, Draft(base_url="http://127.0.0.1:9000/v2"))
    assert line.format(base=tmp_path) in proposal.new.splitlines()
    assert proposal.new.count("data_dir") == 1
