"""The bridge as a Windows service: run it until Windows says stop, and report to the event log.

`python -m tillbridge.windows --name tillbridge --config FILE` is what the service control manager
starts; `packaging/windows/install.ps1` registers that. Windows starts services with no console, in
a thread of its own, and expects an answer within seconds: all of that is here, and none of it needs
Windows to be tested. The class that Windows calls is in `host`.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable
from enum import Enum
from io import TextIOBase
from pathlib import Path
from typing import Any, TextIO, cast

from tillbridge.config.loading import LoadedSettings, load_to_run
from tillbridge.core.errors import BridgeError
from tillbridge.core.log import LOG_FOLDER, LogFiles, configure, get_logger

log = get_logger()


class Kind(Enum):
    """The kinds of entries of the event log."""

    INFORMATION = "information"
    WARNING = "warning"
    ERROR = "error"


Report = Callable[[Kind, str], None]
_KINDS = {"warning": Kind.WARNING, "error": Kind.ERROR, "critical": Kind.ERROR}
# What the machine's administrator wants to see although all is well.
_ALWAYS = {"bridge.ready", "bridge.stopped", "problem.closed"}


class EventLogStream(TextIOBase):
    """Takes the bridge's log as JSON lines; warnings, errors and few others go on to `report`.

    Everything is kept in the data folder (`tillbridge logs`); the event log is for who looks after
    the machine.
    """

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report

    def write(self, text: str) -> int:
        """Take a line."""
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                event, level = str(entry.pop("event")), str(entry.pop("level"))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            if level in _KINDS or event in _ALWAYS:
                self._report(_KINDS.get(level, Kind.INFORMATION), _entry(event, entry))
        return len(text)


def _entry(event: str, fields: dict[str, object]) -> str:
    lines = [f"{name}: {value}" for name, value in fields.items() if name != "at"]
    return "\n".join([event, *lines])


class ServiceBody:
    """The bridge's run as a service. `run` blocks; `stop` may come from any thread, at any time."""

    def __init__(self, config: Path, report: Report) -> None:
        self._config = config
        self._report = report
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self._stopped = False

    def run(self) -> int:
        """Run the bridge; return 0 if it was asked to stop, and 1 if it failed.

        Never raises: what ended it is in the event log, with what to do.
        """
        _without_console()
        try:
            loaded = load_to_run(self._config)
            self._set_up_log(loaded)
            # Only now: a fault of the configuration is reported at once.
            from tillbridge import daemon  # noqa: PLC0415 -- (as above)

            return daemon.run(loaded, self._ask_to_stop)
        except BridgeError as failure:
            self._report(Kind.ERROR, f"{failure.text}\n{failure.fix}".strip())
            return 1
        except Exception as failure:  # noqa: BLE001 -- the last place: told, and started again
            self._report(Kind.ERROR, f"The bridge ended unexpectedly: {failure!r}")
            return 1

    def stop(self) -> None:
        """Ask the bridge to end; it lets what has begun finish."""
        with self._lock:
            self._stopped = True
            stop = self._stop
        if stop is not None:
            stop()

    def _ask_to_stop(self, end: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself meanwhile
                loop.call_soon_threadsafe(end)

        with self._lock:
            self._stop = stop
            stopped = self._stopped
        if stopped:
            end()

    def _set_up_log(self, loaded: LoadedSettings) -> None:
        files = LogFiles(loaded.data_dir / LOG_FOLDER, loaded.settings.bridge.keep_log_bytes)
        configure(
            "json",
            loaded.settings.bridge.log_level,
            stream=cast("TextIO", EventLogStream(self._report)),
            on_line=files.write,
        )


def _without_console() -> None:
    """Give the streams an end: a service has none, and a library that prints must not break."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 -- for good
            setattr(sys, name, nowhere)


_STOP_PENDING = 3  # SERVICE_STOP_PENDING
_LONGEST_ENTRY = 30_000  # characters; the event log takes 31,839


def host(name: str, config: Path) -> None:
    """Be the service `name`, until Windows stops it. Called by the service control manager only."""
    import servicemanager  # noqa: PLC0415 -- there is pywin32 on Windows alone
    import win32serviceutil  # noqa: PLC0415 -- (as above)

    writers = {
        Kind.INFORMATION: servicemanager.LogInfoMsg,
        Kind.WARNING: servicemanager.LogWarningMsg,
        Kind.ERROR: servicemanager.LogErrorMsg,
    }

    def report(kind: Kind, text: str) -> None:
        writers[kind](text[:_LONGEST_ENTRY])

    class Service(win32serviceutil.ServiceFramework):  # type: ignore[misc]  # pywin32 has no types
        _svc_name_ = name

        def __init__(self, arguments: Any) -> None:  # noqa: ANN401 -- pywin32's own list
            super().__init__(arguments)
            self._body = ServiceBody(config, report)

        def SvcDoRun(self) -> None:  # noqa: N802 -- pywin32 calls it so
            code = self._body.run()
            if code:
                # A service that ends by itself counts as failed, and Windows starts it again.
                self.ReportServiceStatus(_STOP_PENDING, win32ExitCode=1066, svcExitCode=code)

        def SvcStop(self) -> None:  # noqa: N802 -- pywin32 calls it so
            self.ReportServiceStatus(_STOP_PENDING, waitHint=20_000)
            self._body.stop()

        SvcShutdown = SvcStop

    servicemanager.Initialize(name, None)
    servicemanager.PrepareToHostSingle(Service)
    servicemanager.StartServiceCtrlDispatcher()


def main() -> None:
    """Be the service."""
    parser = argparse.ArgumentParser(
        prog="python -m tillbridge.windows",
        description="The bridge as a Windows service. Started by Windows, not by hand: "
        "see packaging/windows/README.md, and use `tillbridge run` on a console.",
    )
    parser.add_argument("--name", default="tillbridge", help="the service's name")
    parser.add_argument("--config", type=Path, required=True, help="bridge.toml, as a whole path")
    arguments = parser.parse_args()
    if os.name != "nt":
        parser.exit(2, "This is for Windows. Elsewhere: tillbridge service install\n")
    host(arguments.name, arguments.config)


if __name__ == "__main__":
    main()
