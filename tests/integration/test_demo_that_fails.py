"""A demo whose bridge does not start says so at once, with what the bridge said."""

import os
from pathlib import Path

import pytest

from tillbridge.demo import stage
from tillbridge.demo.stage import DemoFailed, set_up
from tillbridge.sandbox import SandboxSettings


async def test_a_bridge_that_ends_is_told_at_once_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_CONFIG", stage._CONFIG + "\nnonsense = 1\n")
    with pytest.raises(DemoFailed) as caught:
        async with set_up(tmp_path, SandboxSettings(), cooking_s=0.1, usual_ports=False):
            pytest.fail("it cannot be on stage")
    assert caught.value.text == "The bridge stopped while it was starting."
    assert "nonsense" in caught.value.fix
    assert os.fspath(tmp_path / "bridge.log") not in caught.value.fix
