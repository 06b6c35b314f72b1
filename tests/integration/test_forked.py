"""Commands that are forked from one that has played a bridge begin as those do that are started."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.fork_server import Daemon

ROOT = Path(__file__).parents[2]
STATE = "tests.support.process_state"


async def test_a_forked_process_finds_nothing_of_what_was_played_before_it() -> None:
    env = {**os.environ, "TZ": "Asia/Tokyo", "LANGUAGE": "de"}
    program = f"import sys; from {STATE} import main; main()"
    command = [sys.executable, "-c", program, "one", "two"]
    started = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, check=True)

    with tempfile.TemporaryFile() as output:
        forked = Daemon(["one", "two"], env, output, STATE)
        assert await forked.wait() == 0
        output.seek(0)
        found = json.loads(output.read())

    expected = json.loads(started.stdout)
    assert found.pop("path") == str(Path.cwd())
    assert expected.pop("path") == ""
    assert found == expected
