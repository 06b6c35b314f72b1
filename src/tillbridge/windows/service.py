"""The class that the service control manager calls. It holds no logic; see `body`."""

from pathlib import Path
from typing import Any

import servicemanager
import win32serviceutil

from tillbridge.windows.body import Kind, ServiceBody

_WRITERS = {
    Kind.INFORMATION: servicemanager.LogInfoMsg,
    Kind.WARNING: servicemanager.LogWarningMsg,
    Kind.ERROR: servicemanager.LogErrorMsg,
}
_STOP_PENDING = 3  # SERVICE_STOP_PENDING
_LONGEST_ENTRY = 30_000  # characters; the event log takes 31,839


def report(kind: Kind, text: str) -> None:
    """Write an entry into the event log."""
    _WRITERS[kind](text[:_LONGEST_ENTRY])


def host(name: str, config: Path) -> None:
    """Be the service `name`, until Windows stops it. Called by the service control manager only."""

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
