"""Asks a running bridge. Its address and token are in `control.json` in the data folder."""

import http.client
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from tillbridge.cli.exits import CommandFailed, Exit, exit_code_of_name
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, in_zone, reader
from tillbridge.core.started import CONTROL_FILE, ZONE_HEADER

_CONNECT_S = 2.0
_ANSWER_S = 120.0  # a push of a large menu is read, compared and sent meanwhile


class NotRunning(BridgeError):
    """Nothing answers at the address that the bridge announced."""


@dataclass(frozen=True, slots=True)
class RunningBridge:
    """A bridge that runs on this machine."""

    host: str
    port: int
    token: str = field(repr=False)
    pid: int | None = None

    def perform(
        self, name: str, arguments: Mapping[str, object], *, timeout_s: float = _ANSWER_S
    ) -> Any:  # noqa: ANN401 -- as the operation answers
        """Return the answer of an operation.

        Raises CommandFailed with the bridge's own words, NotRunning where nobody is there.
        """
        # http.client asks no proxy: the environment's would not know this machine.
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        try:
            connection.request(
                "POST",
                f"/control/{name}",
                body=json.dumps(dict(arguments)).encode(),
                headers={
                    "Authorization": f"Bearer {self.token}",
                    "Content-Type": "application/json",
                    "Accept-Language": reader().locale.replace("_", "-"),
                    "X-Tillbridge-User": os_user(),
                },
            )
            response = connection.getresponse()
            status, text = response.status, response.read()
            if zone := response.getheader(ZONE_HEADER):
                in_zone(ZoneInfo(zone))
        except TimeoutError as failure:
            raise CommandFailed(
                _("The running bridge did not answer in time."),
                fix=_("See its state: tillbridge status. See its log: tillbridge logs"),
            ) from failure
        except (OSError, http.client.HTTPException) as failure:
            raise NotRunning(_("The bridge does not answer.")) from failure
        finally:
            connection.close()
        return _answer(status, text)


def find_running(data_dir: Path) -> RunningBridge | None:
    """Return the bridge that runs with this data folder, None if none does.

    Raises CommandFailed if this user may not ask it.
    """
    path = data_dir / CONTROL_FILE
    try:
        data = json.loads(path.read_text("utf-8"))
        address = urlsplit(data["url"])
        bridge = RunningBridge(
            address.hostname or "127.0.0.1", address.port or 80, data["token"], data.get("pid")
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as failure:
        raise CommandFailed(
            _("Permission denied: this user cannot read {path}.").format(path=path),
            fix=_("Run the command as the bridge's user, for example: sudo -u tillbridge ..."),
        ) from failure
    except (ValueError, KeyError, TypeError):
        return None  # left half-written by a crash: then nobody is there
    try:
        with socket.create_connection((bridge.host, bridge.port), timeout=_CONNECT_S):
            return bridge
    except OSError:
        return None


def os_user() -> str:
    """Return who gives the command, for the audit trail: whoever became the bridge's user."""
    if name := os.environ.get("SUDO_USER"):
        return name
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in containers
        return str(os.getuid()) if hasattr(os, "getuid") else "?"


def _answer(status: int, text: bytes) -> Any:  # noqa: ANN401 -- (as above)
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if status == 200 and isinstance(answer, dict):
        return answer
    error = answer.get("error") if isinstance(answer, dict) else None
    if status == 401 or not isinstance(error, dict):
        # Another program has the port now, or the bridge is just restarting.
        raise NotRunning(_("The bridge does not answer."))
    raise CommandFailed(
        str(error.get("text", "")),
        fix=str(error.get("fix", "")),
        exit_code=Exit.USAGE if status == 400 else exit_code_of_name(str(error.get("kind"))),
    )
