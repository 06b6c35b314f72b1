"""The log of a real process: its form, and that no planted secret leaves it."""

import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest

PLANTED = "planted-9f8e7d6c5b4a-secret"
PROGRAM = f"""
import asyncio, logging, threading, warnings, sys
from tillbridge.core import log
form, level = sys.argv[1:]
log.configure(form, level)
log.learn_secret({PLANTED!r})
out = log.get_logger()
out.info("receiver.listening", address="127.0.0.1", port=8088)
out.debug("too.fine")
out.info("by.key", client_secret="planted-by-key", deep={{"refresh_token": ["planted-by-key"]}})
out.info("by.value", text="x {PLANTED} y", url="http://x/?q={PLANTED}", raw=b"{PLANTED}")
out.info("by.form", header="Bearer planted-by-form-abc", jwt="eyJplanted0.planted1.planted2")
out.info("in the event {PLANTED}")
out.info("an.object", failure=ValueError("{PLANTED}"))
out.bind(bound="{PLANTED}").warning("was.bound")
out.info("forged", text="a\\nb\\x1b[31mred")
try:
    secret_local = "{PLANTED}"
    raise RuntimeError("secret=planted-by-form " + secret_local)
except RuntimeError:
    out.exception("it.failed")
    logging.getLogger("aiohttp.server").exception("library %s", "token=planted-by-form")
logging.getLogger("alembic").info("too fine")
warnings.warn("{PLANTED}")
def dies():
    raise KeyError("{PLANTED}")
thread = threading.Thread(target=dies, name="worker"); thread.start(); thread.join()
async def forgets():
    asyncio.get_running_loop().call_exception_handler({{"message": "{PLANTED}"}})
asyncio.run(forgets())
raise SystemError("{PLANTED}")
"""


def logged(form: str, level: str = "info") -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, form, level], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    return done.stderr


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in logged("json").splitlines()]


def by_event(lines: list[dict[str, Any]], event: str) -> dict[str, Any]:
    return next(line for line in lines if line["event"] == event)


def test_a_line_has_event_level_and_instant_first(lines: list[dict[str, Any]]) -> None:
    line = by_event(lines, "receiver.listening")
    assert list(line) == ["event", "level", "at", "address", "port"]
    assert line["level"] == "info"
    assert line["at"].endswith("Z")
    assert len(line["at"]) == len("2026-11-21T19:02:00.000Z")


def test_levels_below_the_wanted_one_are_left_out(lines: list[dict[str, Any]]) -> None:
    events = {line["event"] for line in lines}
    assert not events & {"too.fine", "too fine"}


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_planted_secret_is_written(form: str) -> None:
    text = logged(form, "debug")
    for planted in (PLANTED, "planted-by-key", "planted-by-form", "eyJplanted0"):
        assert planted not in text
    assert "too.fine" in text


def test_libraries_warnings_threads_and_the_end_come_the_same_way(
    lines: list[dict[str, Any]],
) -> None:
    loggers = {line["logger"] for line in lines if "logger" in line}
    assert {"aiohttp.server", "py.warnings", "asyncio"} <= loggers
    assert by_event(lines, "thread.died")["thread"] == "worker"
    assert "SystemError" in by_event(lines, "program.died")["exception"]


def test_a_traceback_is_kept_in_one_line(lines: list[dict[str, Any]]) -> None:
    line = by_event(lines, "it.failed")
    assert line["level"] == "error"
    assert line["exception"].startswith("Traceback")
    assert "RuntimeError: secret=[secret]" in line["exception"]


def test_text_from_outside_cannot_forge_console_lines() -> None:
    line = next(line for line in logged("console").splitlines() if "forged" in line)
    assert "a\\nb\\x1b[31mred" in line


def test_auto_is_json_where_nobody_looks() -> None:
    assert logged("auto").startswith("{")


def test_auto_is_for_people_on_a_terminal() -> None:
    main, terminal = pty.openpty()
    with os.fdopen(main, "rb", buffering=0) as screen:
        subprocess.run(
            [
                sys.executable,
                "-c",
                (
                    "from tillbridge.core import log; log.configure();"
                    " log.get_logger().info('x.y', a=1)"
                ),
            ],
            stderr=terminal,
            check=True,
        )
        os.close(terminal)
        assert not screen.read(4096).startswith(b"{")


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    code = (
        "import os, sys; from tillbridge.core import log; log.configure('json');"
        "os.close(2); log.get_logger().info('x.y'); print('still here')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "still here\n"


def journalled(code: str) -> list[str]:
    """What a journal would read of a process that systemd has connected with it."""
    reader, writer = os.pipe()
    about = os.fstat(writer)
    with os.fdopen(reader, encoding="utf-8") as lines:
        subprocess.run(
            [sys.executable, "-c", code],
            stderr=writer,
            env={**os.environ, "JOURNAL_STREAM": f"{about.st_dev}:{about.st_ino}"},
            check=True,
        )
        os.close(writer)
        return lines.read().splitlines()


def test_each_line_for_the_journal_begins_with_its_priority() -> None:
    lines = journalled(
        "import logging; from tillbridge.core import log; log.configure('json', 'debug');"
        "out = log.get_logger();"
        "out.debug('a'); out.info('b'); out.warning('c'); out.error('d'); out.critical('e');"
        "logging.getLogger('library').warning('f')"
    )
    assert [line[:4] for line in lines] == ["<7>{", "<6>{", "<4>{", "<3>{", "<2>{", "<4>{"]
    assert [json.loads(line[3:])["event"] for line in lines] == list("abcdef")


def test_every_line_of_a_traceback_for_people_has_its_priority() -> None:
    lines = journalled(
        "from tillbridge.core import log; log.configure('console')\n"
        "try: 1/0\nexcept ZeroDivisionError: log.get_logger().exception('x.y')"
    )
    assert len(lines) > 3
    assert {line[:3] for line in lines} == {"<3>"}


def test_what_a_command_says_of_a_failure_has_a_priority_too() -> None:
    assert journalled("from tillbridge.cli.say import trouble; trouble('No.', 'Do this.')") == [
        "<3>No.",
        "<3>Do this.",
    ]


def test_a_stream_that_is_not_the_journal_has_no_priorities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", "1:2")
    assert logged("json").startswith("{")
