"""Whoever kills the bridge in the demo sees what it is for: the order comes all the same."""

import errno
import html
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tillbridge.cli import demo_play
from tillbridge.cli.say import line

ROOT = Path(__file__).resolve().parents[2]
BELOW = Path("/proc/thread-self/children")
pytestmark = pytest.mark.xdist_group("usual ports")  # two demos would ask for the same ones


def until(what: str, look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not look():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def bridge_of(demo: int) -> int:
    children = Path(f"/proc/{demo}/task/{demo}/children")  # may miss one while another one ends
    found: list[str] = []

    def look() -> bool:
        found[:] = children.read_text().split()
        return bool(found)

    until("the demo has a bridge", look)
    return int(found[0])


@contextmanager
def demo(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run the demo, as from a script that ignores Ctrl-C; yield it and what it says."""
    said = folder / "said"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # its children begin with it
    try:
        with said.open("wb") as out:
            started = subprocess.Popen(
                [sys.executable, "-u", "-m", "tillbridge", "demo"],
                cwd=ROOT,
                stdout=out,
                stderr=out,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(folder)},
            )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        until("the demo runs", lambda: "Ctrl-C" in said.read_text())
        yield started, said
    finally:
        started.kill()
        started.wait()


def address(said: Path, name: str) -> str:
    """Return an address that the demo has printed."""
    found = re.search(rf"{name} +(http://[^ ]+)", said.read_text())
    assert found is not None
    return found[1]


def page(url: str, **form: str) -> str:
    """Return a page as text, or what comes of pressing a button of it."""
    body = urllib.parse.urlencode(form).encode() if form else None
    with urllib.request.urlopen(url, body, timeout=30) as answer:
        return html.unescape(str(answer.read().decode()))


def order(service: str) -> str:
    """Order something; return the address of the order's page."""
    line = {"external_id": "P01", "variant_external_id": "P01-L", "quantity": 1}
    body = json.dumps({"store_id": "st_main", "items": [line]}).encode()
    with urllib.request.urlopen(service + "_control/orders", body, timeout=30) as answer:
        return f"{service}orders/{json.load(answer)['order_id']}"


@pytest.mark.skipif(not BELOW.exists(), reason="only Linux tells what a process has started")
def test_the_demo_shows_what_its_faults_come_to(tmp_path: Path) -> None:
    with demo(tmp_path) as (running, said):
        killed = bridge_of(running.pid)
        os.kill(killed, signal.SIGKILL)
        until("it says so", lambda: "restarts it" in said.read_text())
        until("another runs", lambda: "is running again" in said.read_text())
        assert bridge_of(running.pid) != killed

        store, bridge = address(said, "Storefront"), address(said, "The bridge")
        service = address(said, "Control panel")
        for url, others in ((store, (bridge, "/#trouble")), (bridge, (store, service))):
            shown = page(url)
            assert "This is a demo" in shown
            assert all(f'href="{other}' in shown for other in others)
        assert "Main Street" in page(bridge)  # as the service calls the store
        command = re.findall(r"--config (\S+/bridge\.toml) status", said.read_text())
        assert [Path(each).exists() for each in command] == [True]
        (printed,) = re.findall(r"^  (.*--config \S+ )status$", said.read_text(), re.MULTILINE)
        from_home = subprocess.run(  # as in a second terminal, in another folder
            [*shlex.split(printed), "doctor"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Everything works." in from_home.stdout, from_home.stderr
        assert "Other users can read" not in from_home.stdout

        page(service + "panel", do="kill")
        assert "The bridge was killed" in page(service)
        ordered = order(service)
        until("it says when", lambda: "tries again in 60 s" in page(ordered))
        until("here too", lambda: "the service retries in 60 s, at" in said.read_text())
        page(service + "panel", do="clear")
        until("it runs", lambda: "The bridge is running." in page(service))
        page(service + "panel", do="till_away")
        page(service + "panel", do="jump_minute")
        until("the bridge has it", lambda: "has not accepted it yet" in page(ordered))
        until("it waits for the till", lambda: "Orders waiting for the till" in page(bridge))
        page(service + "panel", do="clear")
        until("it is accepted", lambda: 'id="state">accepted' in page(ordered))
        assert "the menu had it then" not in page(f"{bridge}orders/{ordered.rpartition('/')[2]}")
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


@pytest.mark.skipif(not BELOW.exists(), reason="only Linux tells what a process has started")
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(
            signal.SIGHUP,
            marks=pytest.mark.slow(reason="as SIGTERM; a window that closes is tried below"),
        ),
    ],
)
def test_the_demo_ends_with_its_terminal_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    with demo(tmp_path) as (running, said):
        bridge = bridge_of(running.pid)
        running.send_signal(number)
        assert running.wait(60) == 0
        assert not Path(f"/proc/{bridge}").exists()
        assert [each for each in tmp_path.iterdir() if each != said] == []


@pytest.mark.skipif(not BELOW.exists(), reason="only Linux tells what a process has started")
def test_the_demo_ends_with_its_window_though_nobody_tells_it(tmp_path: Path) -> None:
    """A closed window tells only the first program in it: make, which waits for the demo."""
    log = tmp_path / "said"
    demo = f"{sys.executable} -u -m tillbridge demo"
    leader, window = pty.fork()
    if leader == 0:
        os.environ |= {"PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path)}
        os.chdir(ROOT)
        os.execv("/bin/sh", ["sh", "-c", f"trap '' HUP; {demo} & echo $! >{log}; wait"])
    said = b""
    try:
        while b"Ctrl-C" not in said:
            said += os.read(window, 65536)
        running = int(log.read_text())
    finally:
        os.close(window)
    until("it has ended", lambda: not Path(f"/proc/{running}").exists())
    os.waitpid(leader, 0)
    assert [each for each in tmp_path.iterdir() if each != log] == []


@pytest.mark.skipif(not BELOW.exists(), reason="only Linux tells what a process has started")
def test_a_line_printed_just_as_the_window_closes_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, terminal = pty.openpty()

    async def prints_once_more(_folder: Path, _adapter: str) -> int:
        os.close(window)
        line("order 1001: received")
        return 1

    monkeypatch.setattr(demo_play, "configure", lambda *_: None)  # this is no process of its own
    monkeypatch.setattr(demo_play, "_until_interrupted", prints_once_more)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open(terminal, "w", encoding="utf-8", buffering=1) as out:  # noqa: PTH123 -- a descriptor
        monkeypatch.setattr(sys, "stdout", out)
        assert demo_play.play(once=False) == 0
        with suppress(OSError):
            out.close()  # what could not be printed
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_is_an_error_of_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    async def cannot_write(_folder: Path, _adapter: str) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(demo_play, "configure", lambda *_: None)  # (as above)
    monkeypatch.setattr(demo_play, "_until_interrupted", cannot_write)
    with pytest.raises(OSError, match="Input/output error"):
        demo_play.play(once=False)
