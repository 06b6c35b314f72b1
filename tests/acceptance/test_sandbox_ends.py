"""The practice service ends in order, however it is ended: what it was told last is in its file."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

LOOK = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def close_the_store(url: str) -> None:
    body = json.dumps({"status": "inactive"}).encode()
    with LOOK.open(f"{url}/_control/stores/st_main/status", body, timeout=30) as answer:
        answer.read()


@pytest.mark.skipif(sys.platform == "win32", reason="ended by signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_changed_last_is_saved_when_it_is_ended(
    how: signal.Signals, tmp_path: Path
) -> None:
    state = tmp_path / "sandbox.json"
    command = [sys.executable, "-u", "-m", "tillbridge", "sandbox", "--port", "0"]
    with subprocess.Popen(
        [*command, "--state", str(state)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as sandbox:
        try:
            assert sandbox.stdout is not None
            told = next(line for line in sandbox.stdout if line.startswith("storefront:"))
            close_the_store(told.split()[1].rstrip("/"))
            sandbox.send_signal(how)
            assert sandbox.wait(30) == 0
        finally:
            sandbox.kill()
    (store, *_others) = json.loads(state.read_text("utf-8"))["stores"]
    assert (store["store_id"], store["status"]) == ("st_main", "inactive")
