"""Parsers in child processes: whatever happens there, here it is a failure in plain words."""

import os
import pickle
import runpy
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import odd_parsers
from tillbridge.adapter import ExportUnreadable, isolation
from tillbridge.adapter.isolation import ChildFailed, IsolatedReader, Limits, call_in_child
from tillbridge.parsing import child as child_process

FIX = "Export it again."


def test_it_returns_what_the_function_returns_as_json() -> None:
    found = call_in_child(odd_parsers.describe, {"a.csv": b"123"}, "more")
    assert found == [[["a.csv", 3]], ["more"]]


@pytest.mark.parametrize(
    ("function", "outcome", "detail"),
    [
        (odd_parsers.abort, "died", "signal 6"),
        (odd_parsers.abort_as_rust_does, "out_of_memory", "200 MB"),
        (odd_parsers.take_memory, "out_of_memory", "200 MB"),
        (odd_parsers.take_memory_bit_by_bit, "out_of_memory", "200 MB"),
        (odd_parsers.stop_iteration, "raised", "StopIteration"),
        (odd_parsers.no_json, "raised", "TypeError: Object of type set is not JSON serializable"),
        (odd_parsers.say_much, "too_large", "2 MB"),
        (odd_parsers.end_quietly, "died", "no result"),
    ],
)
def test_what_goes_wrong_in_the_child_is_a_failure_here(
    function: Callable[[], object], outcome: str, detail: str
) -> None:
    with pytest.raises(ChildFailed) as failed:
        call_in_child(function, limits=Limits(memory_mb=200, answer_mb=1))
    assert (failed.value.outcome, failed.value.detail) == (outcome, detail)


def test_a_child_that_hangs_is_ended() -> None:
    with pytest.raises(ChildFailed) as failed:
        call_in_child(odd_parsers.hang, limits=Limits(seconds=1))
    assert (failed.value.outcome, failed.value.detail) == ("timeout", "1 seconds")


def test_a_function_says_itself_that_a_file_is_unreadable() -> None:
    with pytest.raises(ExportUnreadable) as failed:
        call_in_child(odd_parsers.refuse)
    told = failed.value
    assert (told.text, told.place, told.fix) == ("It is cut off.", "a.xlsx, row 3", "Wait.")
    assert told.passing


def test_what_a_parser_prints_does_not_disturb() -> None:
    assert call_in_child(odd_parsers.print_something) == "and returns"


def test_the_child_does_not_see_the_secrets_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLIENT_SECRET", "planted")
    assert "planted" not in call_in_child(odd_parsers.environment).values()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has a job object for it")
def test_a_child_that_nobody_waits_for_ends_by_itself() -> None:
    figures = (200, -child_process._GRACE_S, 1)
    request = [list(sys.path), figures, (odd_parsers.hang, ())]
    with subprocess.Popen(
        [sys.executable, "-I", "-c", isolation._BOOT], stdin=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        child.stdin.write(b"".join(map(pickle.dumps, request)))
        child.stdin.close()
        assert child.wait(60) == -signal.SIGALRM


def test_a_child_that_cannot_be_started_is_told_as_passing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "menu.xlsx").write_text("x")
    reader = IsolatedReader(fix=FIX)
    monkeypatch.setattr(isolation, "_python", lambda: str(tmp_path / "no-python"))
    with pytest.raises(ExportUnreadable, match="cannot be started: No such file") as failed:
        reader.read([tmp_path / "menu.xlsx"], odd_parsers.describe)
    assert failed.value.passing
    monkeypatch.undo()  # as soon as it can be, it is
    assert reader.read([tmp_path / "menu.xlsx"], odd_parsers.describe) == [[["menu.xlsx", 1]], []]


def test_the_same_content_is_parsed_once(tmp_path: Path) -> None:
    menu, log = tmp_path / "menu.xlsx", tmp_path / "log"
    reader = IsolatedReader(fix=FIX)
    menu.write_text("one")
    for _ in range(3):
        assert reader.read([menu], odd_parsers.count_calls, str(log)) == "one"
    os.utime(menu)
    assert reader.read([menu], odd_parsers.count_calls, str(log)) == "one"
    menu.write_text("two")
    assert reader.read([menu], odd_parsers.count_calls, str(log)) == "two"
    assert log.read_text() == "xx"


def test_a_file_that_ends_its_parser_is_not_parsed_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    menu, log = tmp_path / "menu.xlsx", tmp_path / "log"
    reader = IsolatedReader(fix=FIX)
    menu.write_text("one")

    def read() -> object:
        return reader.read([menu], odd_parsers.count_and_abort, str(log))

    for _ in range(3):
        with pytest.raises(ExportUnreadable) as failed:
            read()
        assert failed.value.text == "menu.xlsx ended the process that reads it (signal 6)."
        assert (failed.value.place, failed.value.fix) == ("menu.xlsx", FIX)
        assert not failed.value.passing
    assert log.read_text() == "x"
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 601)
    with pytest.raises(ExportUnreadable):
        read()
    assert log.read_text() == "xx"  # it may have been the machine: once more after ten minutes


@pytest.mark.parametrize(
    ("function", "seconds", "text"),
    [
        (odd_parsers.hang, 1, "menu.xlsx could not be read within 1 seconds."),
        (odd_parsers.take_memory, 60, "menu.xlsx needs more than 200 MB of memory to be read."),
        (odd_parsers.say_much, 60, "menu.xlsx holds 2 MB of text; no menu is that large."),
        (
            odd_parsers.stop_iteration,
            60,
            "menu.xlsx is damaged; it cannot be read (StopIteration).",
        ),
    ],
)
def test_every_end_of_a_child_has_its_sentence(
    function: Callable[[], object], seconds: int, text: str, tmp_path: Path
) -> None:
    menu = tmp_path / "menu.xlsx"
    menu.write_text("x")
    reader = IsolatedReader(fix=FIX, limits=Limits(memory_mb=200, seconds=seconds, answer_mb=1))
    with pytest.raises(ExportUnreadable) as failed:
        reader.read([menu], odd_parsers.ignoring_files, function.__name__)
    assert (failed.value.text, failed.value.fix) == (text, FIX)


def test_a_file_that_is_far_too_large_is_not_even_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    menu = tmp_path / "menu.xlsx"
    with menu.open("wb") as file:
        file.truncate(65 << 20)
    monkeypatch.setattr(isolation, "read_shared", None)
    with pytest.raises(ExportUnreadable, match="has 65 MB; no menu is that large"):
        IsolatedReader(fix=FIX).read([menu], odd_parsers.describe)


def test_on_windows_the_child_joins_a_job_with_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}
    basic = {"LimitFlags": 0x2000}
    job = types.ModuleType("win32job")
    vars(job).update(
        JobObjectExtendedLimitInformation=9,
        JOB_OBJECT_LIMIT_PROCESS_MEMORY=0x100,
        JOB_OBJECT_LIMIT_PROCESS_TIME=0x2,
        JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION=0x400,
        CreateJobObject=lambda _attributes, _name: "job",
        QueryInformationJobObject=lambda _job, _kind: {"BasicLimitInformation": basic},
        SetInformationJobObject=lambda _job, _kind, settings: asked.update(settings),
        AssignProcessToJobObject=lambda which, process: asked.update(joined=(which, process)),
    )
    api = types.ModuleType("win32api")
    vars(api).update(SetErrorMode=lambda mode: asked.update(mode=mode), GetCurrentProcess=lambda: 7)
    constants = types.ModuleType("win32con")
    vars(constants).update(SEM_FAILCRITICALERRORS=1, SEM_NOGPFAULTERRORBOX=2)
    for module in (job, api, constants):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys, "platform", "win32")
    runpy.run_path(str(child_process.__file__))["_limit"](200 << 20, 35.0)
    assert asked == {
        "mode": 3,
        "ProcessMemoryLimit": 200 << 20,
        "BasicLimitInformation": {"LimitFlags": 0x2502, "PerProcessUserTimeLimit": 350_000_000},
        "joined": ("job", 7),
    }
