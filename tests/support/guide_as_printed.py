"""The commands of docs/restaurant.md, typed as printed, at the usual ports: a program of its own.

`make setup` alone is left out: the folder of the bridge has the environment of the tests.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs/restaurant.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_WITHIN_S = 200.0


class Terminal:
    """A shell in which lines are typed; `said` is what it has shown so far."""

    def __init__(self, folder: Path, lines: str, log: Path) -> None:
        self._log = log
        with log.open("wb") as shown:
            self._shell = subprocess.Popen(
                ["sh", "-e", "-c", lines],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=shown,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What the terminal shows."""
        return self._log.read_text("utf-8")

    def end(self) -> int:
        """Wait until the commands have ended, and return the exit code of the last."""
        return self._shell.wait(_WITHIN_S)

    def press_ctrl_c(self) -> None:
        """Interrupt what runs in the terminal, and wait until all of it has ended."""
        os.killpg(self._shell.pid, signal.SIGINT)
        self._shell.wait(_WITHIN_S)


def _answers(url: str) -> bool:
    look = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + _WITHIN_S
    while time.monotonic() < until:
        try:
            with look.open(url, timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            time.sleep(0.1)
    return False


def main() -> None:
    """Type all of it, and print as JSON what each terminal showed."""
    home = Path.home()
    clone, logs = home / "tillbridge", home / "logs"
    clone.mkdir()
    logs.mkdir()
    (clone / ".venv").symlink_to(sys.prefix)
    set_up, demo, start, practise, look, _check = BLOCK.findall(GUIDE.read_text("utf-8"))
    known = set_up.replace("make setup\n", "")
    said: dict[str, object] = {}
    for name, lines in (("version", known), ("demo", known + demo)):
        terminal = Terminal(clone, lines, logs / name)
        said[name] = [terminal.end(), terminal.said]
    bridge = Terminal(clone, known + start, logs / "run")
    said["page"] = _answers("http://127.0.0.1:8089/setup")
    service = Terminal(clone, practise, logs / "sandbox")
    said["storefront"] = _answers("http://127.0.0.1:9000/")
    terminal = Terminal(clone, look, logs / "status")
    said["status"] = [terminal.end(), terminal.said]
    for name, terminal in (("run", bridge), ("sandbox", service)):
        terminal.press_ctrl_c()
        said[name] = terminal.said
    said["left"] = sorted(
        str(path.relative_to(clone))
        for path in clone.rglob("*")
        if path.name != ".venv" and "data/" not in str(path)
    )
    sys.stdout.write(f"\n{json.dumps(said)}")


if __name__ == "__main__":
    main()
