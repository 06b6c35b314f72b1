"""The commands of the guides, and where they are run, as a program of its own.

Everything is as a reader has it: an ordinary user, a home with nothing in it, the program on the
PATH. Those for a restaurant and a technician are run in the folder of a bridge that runs and has an
order; those for a vendor in a folder with a package of his, and a till that it reads.
"""

import asyncio
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests.support.fork_server import run
from tillbridge.adapter.conformance.subject import plain_items
from tillbridge.demo.stage import Stage, set_up
from tillbridge.sandbox import SandboxSettings

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ("README.md", "docs/restaurant.md", "docs/technician.md")
# Their blocks of commands are run as printed by tests/integration/test_adapter_tutorial.py.
TUTORIALS = ("docs/adapters/tutorial.md", "docs/adapters/tutorial-files.md")
# What beginners read first: it makes the package that the others find.
VENDOR_PAGES = (
    "docs/adapters/writing.md",
    *sorted(
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "docs/adapters").glob("*.md")
        if path.name != "writing.md"
    ),
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
    ". .venv/bin/activate": "is run as printed: tests/acceptance/test_guide_as_printed.py",
    "cd ": "(as above)",
    "tillbridge run": "(as above)",
    "tillbridge sandbox": "(as above)",
    "tillbridge demo": "(as above) with other tills: tests/acceptance/test_demo_tills.py",
    "tillbridge connect": "waits for a person: the demo has connected with --no-browser",
    "tillbridge password": "asks at a terminal: tests/integration/test_page_access.py",
    "tillbridge service install": "changes this machine: tests/machine",
    "pip ": "changes what the tests run in: tests/integration/test_adapter_tutorial.py",
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
VENDOR_ANSWERS = {
    "tillbridge adapter modifiers STORE": (2, "an adapter of HTTP has no file of modifiers"),
}
# What takes half a minute is run for one check (tests/integration/test_adapter_tutorial.py), and
# what goes on until it is stopped once.
_SHORTENED = {
    "tillbridge adapter try mytill": "--once",
    "tillbridge adapter check": "--only declares",
    "pytest": "-k declares -p no:cacheprovider -p no:asyncio -q",
}
# Named in a sentence, for which they need no arguments.
_NAMED = {"tillbridge adapter check", "tillbridge adapter record"}
# What stands for something of the reader's, and what that is here.
_PLACEHOLDERS = {"NAME": "mytill", "FOLDER": "no_prices", "STORE": "main", "FILE.toml": "a.toml"}
# What looks like a path of the clone, and is none.
_NOT_PATHS = {
    "Europe/Berlin",  # a time zone
    "pizze/marinara/maxi",  # ids
    "macarons/12/metal",
    "milk/oat",
    "orders_dir/.tillbridge",  # a folder of the restaurant's
    "locale/de/LC_MESSAGES/tillbridge.po",  # what `pybabel init` makes
}
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PROGRAMS = {"tillbridge", "make", "pytest", *(each.split()[0] for each in NOT_RUN)}
_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+/?")


def commands(page: str) -> Iterator[str]:
    """Return each command of a page, without comments."""
    text = (ROOT / page).read_text("utf-8")
    for block in () if page in TUTORIALS else _BLOCK.findall(text):
        yield from (shlex.join(shlex.split(line, comments=True)) for line in block.splitlines())
    for span in _INLINE.findall(_BLOCK.sub("", text)):
        if span.split()[0] in _PROGRAMS and len(span.split()) > 1 and "..." not in span:
            yield span


def paths(page: str) -> Iterator[str]:
    """Return what a page names as a path of the clone, or of a vendor's package."""
    text = _BLOCK.sub("", (ROOT / page).read_text("utf-8"))
    yield from (
        span for span in _INLINE.findall(text) if _PATH.fullmatch(span) and span not in _NOT_PATHS
    )


def reason_not_to_run(command: str) -> str | None:
    """Return why a command is not run here; None for one that is."""
    return next((why for begin, why in NOT_RUN.items() if f"{command} ".startswith(begin)), None)


def runnable() -> list[str]:
    """Return each command that is run, once, in the order of the guides."""
    every = (command for page in GUIDES for command in commands(page))
    return list(dict.fromkeys(each for each in every if reason_not_to_run(each) is None))


def runnable_by_vendors() -> list[tuple[str, str]]:
    """Return each page and command of a vendor's that is run, once on each page."""
    elsewhere = {*runnable(), *_NAMED}
    every = ((page, command) for page in VENDOR_PAGES for command in commands(page))
    wanted = ((page, each) for page, each in every if each not in elsewhere)
    return list(dict.fromkeys(each for each in wanted if reason_not_to_run(each[1]) is None))


def _carried_out(command: str, folder: Path) -> tuple[int, str]:
    program, *arguments = shlex.split(command)
    if program == "tillbridge":
        done = run(*arguments, cwd=folder, env=dict(os.environ), within_s=60)
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


def _of_a_vendor(command: str, page: str, folder: Path) -> tuple[int, str]:
    words = [_PLACEHOLDERS.get(each, each) for each in shlex.split(command)]
    for begin, more in _SHORTENED.items():
        if f"{command} ".startswith(f"{begin} "):
            words += shlex.split(more)
    if (folder / "adapters").exists() and "new" in words:  # one way to begin among several
        folder = Path(tempfile.mkdtemp(dir=folder))
    in_package = words[0] in {"pytest", "pybabel"} or (page in TUTORIALS and "--store" not in words)
    return _carried_out(shlex.join(words), folder / "adapters/mytill" if in_package else folder)


def _as_installed(folder: Path) -> None:
    """Let the package of `folder` be found by its name, as after `pip install`."""
    about = folder / "installed/tillbridge_mytill-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tillbridge-mytill\nVersion: 0.1.0\n"
    )
    (about / "entry_points.txt").write_text(
        "[tillbridge.adapters]\nmytill = tillbridge_mytill:ADAPTER\n"
    )


@contextmanager
def _till(folder: Path) -> Iterator[None]:
    """Let the till of the package's rig answer, and say where in the files that a reader writes."""
    sys.path.append(str(folder / "adapters/mytill/src"))
    rig = importlib.import_module("tillbridge_mytill.rig").RIG(folder / "till")
    rig.sell(plain_items(), "EUR")
    options = "".join(f"{name} = {json.dumps(value)}\n" for name, value in rig.options().items())
    (folder / "adapters/mytill/sample.toml").write_text(options)
    (folder / "a.toml").write_text('menu = "a.csv"\n')
    (folder / "a.csv").write_text("external_id,name,price\n1,Soup,4.50\n")
    store = 'store_id = "st"\nlocation_id = "main"\ncurrency = "EUR"\n'
    service = (
        'base_url = "http://127.0.0.1:9/v2"\nclient_id = "app"\nclient_secret = "unused-secret"\n'
    )
    (folder / "bridge.toml").write_text(
        f'[service]\n{service}[receiver]\npublic_url = "http://127.0.0.1:8088"\n'
        f'[stores.main]\n{store}[stores.main.pos]\nadapter = "mytill"\n{options}'
    )
    try:
        yield
    finally:
        rig.close()


def run_those_of_vendors() -> None:
    """Run them all, and print what came of each as JSON: [page, command, code, what it wrote]."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as till:
        folder = Path(name)
        _as_installed(folder)
        searched = [folder / "installed", folder / "adapters/mytill/src"]
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, searched))
        came = []
        for page, command in runnable_by_vendors():
            came.append([page, command, *_of_a_vendor(command, page, folder)])
            if len(came) == 1:  # the package has been made
                till.enter_context(_till(folder))
    sys.stdout.write(f"\n{json.dumps(came)}")


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
    if sys.argv[1:] == ["vendors"]:
        run_those_of_vendors()
    else:
        asyncio.run(main())
