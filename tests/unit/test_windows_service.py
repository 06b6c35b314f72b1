"""The Windows service, without Windows: its class with fakes, its body with the real daemon."""

import base64
import logging
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog

from tests.support.bridge_process import free_port
from tillbridge.adapter.sharing import SHARE_ALL, open_shared, read_shared, sharing_opener
from tillbridge.config.loading import load
from tillbridge.ledger.key import Sealing, machine_sealing, seal, unseal
from tillbridge.windows import EventLogStream, Kind, ServiceBody

LONGEST_S = 60  # on a machine with much else to do
CONFIG = """
[bridge]
data_dir = "data"
[service]
base_url = "http://127.0.0.1:{port}/v2"
client_id = "app"
client_secret = "planted-client-secret"
redirect_uri = "http://127.0.0.1:{callback}/oauth/callback"
[receiver]
listen = "127.0.0.1:0"
public_url = "https://store.example"
[status_page]
listen = "127.0.0.1:0"
[stores.main]
location_id = "loc-1"
currency = "USD"
[stores.main.pos]
adapter = "folder"
menu = "menu.csv"
orders_dir = "orders"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "Café del Mar, Küche"  # a user's name, as they are
    (folder / "orders").mkdir(parents=True)
    (folder / "menu.csv").write_text("external_id,name,price\nb,Burger,9.50\n")
    path = folder / "bridge.toml"
    path.write_text(CONFIG.format(port=free_port(), callback=free_port()), encoding="utf-8")
    return path


class EventLog:
    def __init__(self) -> None:
        self.entries: list[tuple[Kind, str]] = []
        self.ready = threading.Event()

    def __call__(self, kind: Kind, text: str) -> None:
        self.entries.append((kind, text))
        if text.startswith("bridge.ready"):
            self.ready.set()


@pytest.fixture(autouse=True)
def quiet_logs() -> Iterator[None]:
    """Put the log of this process back as it was."""
    root = logging.getLogger()
    handlers, level, hooks = root.handlers, root.level, (threading.excepthook, sys.excepthook)
    before = structlog.get_config()
    yield
    structlog.configure(**before)
    root.handlers, root.level = handlers, level
    threading.excepthook, sys.excepthook = hooks
    logging.captureWarnings(capture=False)


def test_the_bridge_runs_in_a_thread_of_the_service_until_it_is_stopped(config: Path) -> None:
    told = EventLog()
    body = ServiceBody(config, told)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(body.run()))
    thread.start()
    assert told.ready.wait(LONGEST_S), told.entries
    body.stop()
    thread.join(LONGEST_S)
    assert codes == [0], told.entries
    body.stop()  # Windows may ask twice
    assert (config.parent / "data" / "ledger.db").exists()
    assert list((config.parent / "data" / "log").iterdir()), "the whole log is kept"
    assert any(text.startswith("problem.opened") for _kind, text in told.entries)
    assert "planted-client-secret" not in repr(told.entries)


def test_a_stop_before_it_has_started_ends_it(config: Path) -> None:
    body = ServiceBody(config, EventLog())
    body.stop()
    assert body.run() == 0


def test_a_fault_of_the_configuration_is_told_with_what_to_do(tmp_path: Path) -> None:
    told = EventLog()
    assert ServiceBody(tmp_path / "gone.toml", told).run() == 1
    ((kind, text),) = told.entries
    assert kind is Kind.ERROR
    assert "gone.toml" in text
    assert "\n" in text, "the second line says what to do"


def test_a_service_without_a_console_may_print(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    body = ServiceBody(config, EventLog())
    body.stop()
    assert body.run() == 0
    for stream in (sys.stdout, sys.stderr):
        print("a library that prints", file=stream)
        stream.close()


def test_the_event_log_gets_what_a_person_must_know() -> None:
    told = EventLog()
    stream = EventLogStream(told)
    stream.write('{"event": "menu.read", "level": "info", "at": "x", "store": "main"}\n')
    stream.write('{"event": "bridge.ready", "level": "info", "at": "x"}\n')
    stream.write('{"event": "pos.offline", "level": "warning", "at": "x", "store": "main"}\n')
    stream.write('{"event": "task.died", "level": "error", "at": "x"}\nrubbish\n[1]\n"text"\n{}\n')
    assert told.entries == [
        (Kind.INFORMATION, "bridge.ready"),
        (Kind.WARNING, "pos.offline\nstore: main"),
        (Kind.ERROR, "task.died"),
    ]


class FakeFramework:
    """win32serviceutil.ServiceFramework, as far as the class uses it."""

    def __init__(self, arguments: list[str]) -> None:
        self.arguments = arguments
        self.reported: list[tuple[int, dict[str, int]]] = []

    def ReportServiceStatus(self, status: int, **more: int) -> None:  # noqa: N802 -- as pywin32's
        self.reported.append((status, more))


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stand-ins for pywin32; what is hosted is in `hosted`."""
    seen: dict[str, Any] = {"log": []}
    manager = types.ModuleType("servicemanager")
    for name in ("LogInfoMsg", "LogWarningMsg", "LogErrorMsg"):
        setattr(manager, name, lambda text, name=name: seen["log"].append((name, text)))
    calls = {
        "Initialize": lambda name, _file: seen.update(name=name),
        "PrepareToHostSingle": lambda kind: seen.update(hosted=kind),
        "StartServiceCtrlDispatcher": lambda: seen.update(started=True),
    }
    for name, call in calls.items():
        setattr(manager, name, call)
    utility = types.ModuleType("win32serviceutil")
    cast("Any", utility).ServiceFramework = FakeFramework
    monkeypatch.setitem(sys.modules, "servicemanager", manager)
    monkeypatch.setitem(sys.modules, "win32serviceutil", utility)
    return seen


def test_the_class_runs_the_body_and_stops_it(windows: dict[str, Any], config: Path) -> None:
    from tillbridge.windows import host

    host("tillbridge", config)
    assert windows["started"]
    service = windows["hosted"](["tillbridge"])
    assert service._svc_name_ == "tillbridge"
    thread = threading.Thread(target=service.SvcDoRun)
    thread.start()
    deadline = time.monotonic() + LONGEST_S
    while not any("bridge.ready" in text for _name, text in windows["log"]):
        assert time.monotonic() < deadline, windows["log"]
        time.sleep(0.02)
    service.SvcStop()
    thread.join(LONGEST_S)
    assert not thread.is_alive()
    assert [status for status, _more in service.reported] == [3], "stopping, and no failure"
    assert ("LogInfoMsg", "bridge.stopped") in windows["log"]


def test_a_run_that_failed_is_told_to_windows_which_starts_it_again(
    windows: dict[str, Any], tmp_path: Path
) -> None:
    from tillbridge.windows import host

    host("tillbridge", tmp_path / "gone.toml")
    service = windows["hosted"](["tillbridge"])
    service.SvcDoRun()
    assert service.reported == [(3, {"win32ExitCode": 1066, "svcExitCode": 1})]
    assert windows["log"][0][0] == "LogErrorMsg"


# ----------------------------------------------------------------------------- keys


ROT = Sealing(lambda key: key[::-1], lambda blob: blob[::-1])


def test_a_key_is_sealed_and_opened_by_the_same_machine() -> None:
    sealed = seal(b"the key", ROT)
    assert b"the key" not in sealed
    assert unseal(sealed + b"\r\n", ROT) == b"the key"
    assert unseal(b"a plain one, of before", ROT) == b"a plain one, of before"
    assert seal(b"the key", None) == b"the key"


def test_a_sealed_key_of_another_machine_says_so() -> None:
    with pytest.raises(OSError, match="on the machine it comes from"):
        unseal(seal(b"the key", ROT), None)
    with pytest.raises(OSError, match="damaged"):
        unseal(b"dpapi:%%%", ROT)
    refusing = Sealing(ROT.protect, _refuse)
    with pytest.raises(OSError, match="cannot"):
        unseal(b"dpapi:" + base64.b64encode(b"x"), refusing)


def _refuse(_blob: bytes) -> bytes:
    raise OSError(0, "it cannot")


def test_windows_seals_for_the_machine_and_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failure(Exception):
        winerror, strerror = 13, "The data is invalid."

    asked: list[tuple[object, ...]] = []

    def protect(content: bytes, *more: object) -> bytes:
        asked.append(more)
        return content[::-1]

    def unprotect(content: bytes, *more: object) -> tuple[str, bytes]:
        asked.append(more)
        if content == b"of another machine":
            raise Failure
        return "tillbridge", content[::-1]

    crypt = SimpleNamespace(CryptProtectData=protect, CryptUnprotectData=unprotect)
    monkeypatch.setitem(sys.modules, "win32crypt", crypt)
    monkeypatch.setitem(sys.modules, "pywintypes", SimpleNamespace(error=Failure))
    monkeypatch.setattr(sys, "platform", "win32")
    sealing = machine_sealing()
    assert sealing is not None
    assert sealing.unprotect(sealing.protect(b"the key")) == b"the key"
    assert asked == [("tillbridge", None, None, None, 0x5), (None, None, None, 0x1)]
    with pytest.raises(OSError, match="The data is invalid"):
        sealing.unprotect(b"of another machine")


# ----------------------------------------------------------------------------- files and paths


def test_files_are_opened_so_that_their_till_may_replace_them(tmp_path: Path) -> None:
    path = tmp_path / "menu.csv"
    path.write_bytes(b"whole")
    asked: list[tuple[object, ...]] = []

    def create_file(*arguments: object) -> int:
        asked.append(arguments)
        return 77

    def to_descriptor(handle: int) -> int:
        assert handle == 77
        return os.open(path, os.O_RDONLY)

    opener: Callable[[str, int], int] = sharing_opener(create_file, to_descriptor)
    with open(path, "rb", opener=opener) as file:
        assert file.read() == b"whole"
    ((name, access, sharing, disposition, _flags),) = asked
    assert (name, access, disposition) == (str(path), 0x80000000, 3)
    assert sharing == SHARE_ALL == 7
    with open_shared(path) as shared:
        assert shared.read() == read_shared(path) == b"whole"


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ('"C:/POS/Export/menu.csv"', ("C:\\", "POS", "Export", "menu.csv")),
        ("'C:\\POS\\Küche\\menu.csv'", ("C:\\", "POS", "Küche", "menu.csv")),
        ('"//server/pos share/menu.csv"', ("\\\\server\\pos share\\", "menu.csv")),
        ("'\\\\server\\pos share\\menu.csv'", ("\\\\server\\pos share\\", "menu.csv")),
    ],
)
def test_paths_may_be_written_as_windows_has_them(
    config: Path, written: str, parts: tuple[str, ...]
) -> None:
    text = config.read_text("utf-8").replace('menu = "menu.csv"', f"menu = {written}")
    config.write_text(text, encoding="utf-8")
    options = load(config).settings.stores["main"].pos
    told = PureWindowsPath(str((options.model_extra or {})["menu"]))
    assert told.parts == parts
    assert told.is_absolute(), "it does not count from the configuration's folder"
