"""`tillbridge integration ...` beside a running bridge: what is asked, confirmed, shown."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.test_command_line import TOKEN, Program
from tests.support.fake_control import FakeControl
from tillbridge.core.clock import Clock
from tillbridge.core.metrics import Metrics
from tillbridge.web.authenticator import AccessRules, Authenticator
from tillbridge.web.listener import StatusListener


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.delenv("TILLBRIDGE_DATA_DIR", raising=False)
    return Program(tmp_path)


@pytest.fixture
async def bridge(program: Program) -> AsyncIterator[FakeControl]:
    control = FakeControl()
    dispatcher = control.dispatcher()
    listener = StatusListener(
        dispatcher, Authenticator(AccessRules(), Clock()), token=TOKEN, metrics=Metrics()
    )
    host, port = await listener.start("127.0.0.1", 0)
    program.data.mkdir()
    told = {"url": f"http://{host}:{port}", "token": TOKEN, "pid": 7}
    (program.data / "control.json").write_text(json.dumps(told))
    yield control
    await listener.close()


async def test_what_differs_is_shown_beside_what_is_configured(
    program: Program, bridge: FakeControl
) -> None:
    bridge.integration.shown["plan"] = {"kind": "change", "lines": ["webhook_url: a -> b"]}
    done = await program("integration", "show", "main")
    assert done.code == 0, done.err
    assert "https://old.example/webhooks/main  https://new.example/webhooks/main" in done.out
    assert "tillbridge integration apply main" in done.out
    assert json.loads((await program("integration", "show", "main", "--json")).out)["secret"]


@pytest.mark.parametrize("action", ["rotate-secret", "remove", "reintegrate"])
async def test_what_cannot_be_undone_wants_a_word_and_takes_yes_for_one(
    program: Program, bridge: FakeControl, action: str
) -> None:
    refused = await program("integration", action, "main")
    assert refused.code == 2
    assert "--yes" in refused.err
    did = ("integration " + action, "main")
    assert did not in bridge.asked
    done = await program("integration", action, "main", "--yes", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["ok"]
    assert did in bridge.asked


async def test_a_defect_of_the_running_bridge_is_no_bridge_that_is_away(
    program: Program, bridge: FakeControl
) -> None:
    bridge.failure = ValueError("row 7")
    done = await program("integration", "remove", "main", "--yes", "--json")
    assert done.code == 1
    assert "a defect of its own: ValueError" in done.err
    assert json.loads(done.out)["error"]["exit_code"] == 1


async def test_removing_tells_what_it_does_here(program: Program, bridge: FakeControl) -> None:
    told = (await program("integration", "remove", "main")).err
    for words in ("2 orders are still open", "no longer sends", "stay here", "24 hours"):
        assert words in told
    assert bridge.asked == [("integration", "main")]


@pytest.mark.parametrize(
    ("kind", "code"), [("nothing", 0), ("change", 0), ("reintegrate", 2), ("rotate", 2)]
)
async def test_applying_asks_only_where_a_new_integration_is_due(
    program: Program, bridge: FakeControl, kind: str, code: int
) -> None:
    bridge.integration.shown["plan"] = {"kind": kind, "lines": ["a: b -> c"], "costs": ["It ..."]}
    done = await program("integration", "apply", "main")
    assert done.code == code, done.out + done.err
    assert (("integration apply", "main") in bridge.asked) == (code == 0)
    assert (await program("integration", "apply", "main", "--yes")).code == 0


@pytest.mark.parametrize(("word", "code"), [("y\n", 0), ("n\n", 1)])
async def test_a_person_on_a_terminal_is_asked(
    program: Program, bridge: FakeControl, word: str, code: int
) -> None:
    ours, theirs = pytest.importorskip("pty").openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tillbridge", "--config", str(program.config)),
        *("integration", "remove", "main"),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.write(ours, word.encode())
    await asyncio.wait_for(process.communicate(), 60)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code
    assert (("integration remove", "main") in bridge.asked) == (code == 0)
