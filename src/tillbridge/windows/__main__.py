"""`python -m tillbridge.windows`: what the service control manager starts."""

import argparse
import os
from pathlib import Path
from typing import Any

from tillbridge.windows import Kind, ServiceBody

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
