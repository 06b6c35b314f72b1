"""The commands of the guides, and a demo in which they are run, as a program of its own.

Everything is as a reader has it: an ordinary user, a home with nothing in it, the program on the
PATH, the folder of a bridge that runs, and one order in it.
"""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.support.fork_server import run
from tillbridge.demo.stage import Stage, set_up
from tillbridge.sandbox import SandboxSettings

ROOT = Path(__file__).resolve().parents[2]
GUIDES = (
    "README.md",
    "docs/restaurant.md",
    "docs/technician.md",
    "docs/adapters/writing.md",
)

# Commands that are not run here, by how they begin, and why.
NOT_RUN = {
    "git clone": "wants the internet",
    "apt-get ": "wants root and the internet",
    "sudo ": "wants root, and changes this machine",
    "systemctl ": "wants systemd and the installed package: tests/machine",
    "journalctl ": "(as above)",
    "timedatectl ": "changes this machine",
    "ssh ": "wants another machine",
    ". .venv/bin/activate": "puts the program on the PATH, where it is here already",
    "cd ": "this is the folder already",
    "tillbridge run": "goes on until it is stopped: the demo's bridge is one",
    "tillbridge sandbox": "(as above) the demo's service is one",
    "tillbridge demo": "what these commands are run in; tests/acceptance/test_demo_tills.py",
    "tillbridge connect": "waits for a person: the demo has connected with --no-browser",
    "tillbridge password": "asks at a terminal: tests/integration/test_page_access.py",
    "tillbridge service install": "changes this machine: tests/machine",
    "tillbridge adapter check": "takes half a minute: tests/integration/test_adapter_tutorial.py",
    "tillbridge adapter record": "wants a till",
    "pip ": "changes what the tests run in",
    "pytest ": "(as above)",
    "tillbridge restore": "wants a stopped bridge: tests/acceptance/test_backup_and_restore.py",
}
# Those that say no, and why.
ANSWERS = {
    "tillbridge alerts test": (2, "no alerts are configured"),
    "tillbridge integration rotate-secret main": (2, "asks a person, and there is none"),
    "tillbridge menu approve main": (1, "nothing is held"),
    "tillbridge menu dismiss main": (1, "nothing is held"),
    "tillbridge tables plan main": (1, "the demo's till has no tables"),
    "tillbridge tables approve main": (1, "(as above)"),
    "tillbridge tables qr main": (1, "(as above)"),
    "tillbridge integration reintegrate main": (2, "asks a person, and there is none"),
    "tillbridge store push main": (1, "the demo's store has no settings file"),
    "tillbridge community webhook remake hall": (2, "the demo has no community"),
}
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PROGRAMS = {"tillbridge", "make", *(each.split()[0] for each in NOT_RUN)}
_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+/?")


def commands(page: str) -> Iterator[str]:
    """Return each command of a page, without comments."""
    text = (ROOT / page).read_text("utf-8")
    for block in _BLOCK.findall(text):
        yield from (shlex.join(shlex.split(line, comments=True)) for line in block.splitlines())
    for span in _INLINE.findall(_BLOCK.sub("", text)):
        if span.split()[0] in _PROGRAMS and len(span.split()) > 1 and "..." not in span:
            yield span


def paths(page: str) -> Iterator[str]:
    """Return what a page names as a path of the clone."""
    text = _BLOCK.sub("", (ROOT / page).read_text("utf-8"))
    yield from (span for span in _INLINE.findall(text) if _PATH.fullmatch(span))


def reason_not_to_run(command: str) -> str | None:
    """Return why a command is not run here; None for one that is."""
    return next((why for begin, why in NOT_RUN.items() if f"{command} ".startswith(begin)), None)


def runnable() -> list[str]:
    """Return each command that is run, once, in the order of the guides."""
    every = (command for page in GUIDES for command in commands(page))
    return list(dict.fromkeys(each for each in every if reason_not_to_run(each) is None))


def _carried_out(command: str, folder: Path) -> tuple[int, str]:
    program, *arguments = shlex.split(command)
    if program == "tillbridge":
        done = run(*arguments, cwd=folder, within_s=60)
        return done.returncode, done.stdout + done.stderr
    if program == "make":  # what it would do: the tests run in what it has done
        command = f"make --dry-run -C {shlex.quote(str(ROOT))} {shlex.join(arguments)}"
    other = subprocess.run(
        ["sh", "-c", command], cwd=folder, check=False, capture_output=True, text=True, timeout=60
    )
    return other.returncode, other.stdout + other.stderr


async def _ready(stage: Stage) -> None:
    await stage.connect()
    await stage.until("the menu is on sale", stage.menu_is_on_sale)
    order = await stage.place("P02")
    await stage.until("it is ready", partial(stage.order_is, order, "ready"))


async def main() -> None:
    """Run them all, and print what came of each as JSON: {command: [code, what it wrote]}."""
    with tempfile.TemporaryDirectory() as name:
        folder, settings = Path(name), SandboxSettings(auto_consent=True)
        async with set_up(folder, settings, cooking_s=0.1, usual_ports=False) as stage:
            await _ready(stage)
            came = {
                each: await asyncio.to_thread(_carried_out, each, folder) for each in runnable()
            }
    sys.stdout.write(f"\n{json.dumps(came)}")


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    asyncio.run(main())
