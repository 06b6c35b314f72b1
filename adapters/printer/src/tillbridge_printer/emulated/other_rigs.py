"""The suite's till once more, as printers of the two other kinds."""

import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tillbridge_printer.emulated.cloud_client import CloudClient
from tillbridge_printer.emulated.epos_server import EposServer
from tillbridge_printer.rig import PaperRig, PrinterRig

TOKEN = "a-token-for-the-rig"  # noqa: S105 -- of an emulated printer


class EposRig(PrinterRig):
    """An Epson printer with its ePOS-Print service."""

    scheme = "epos"
    kind = EposServer


class CloudRig(PaperRig):
    """A Star printer that polls."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.client = CloudClient(port, TOKEN)
        self.client.start()

    def options(self) -> Mapping[str, Any]:
        """Name the port that the printer polls, and our layouts."""
        return {
            **super().options(),
            "printer": f"cloudprnt://127.0.0.1:{self.client.port}",
            "token": TOKEN,
        }

    def papers(self) -> Sequence[str]:
        """Return what came out, read off the pictures."""
        return [ticket.text for ticket in self.client.tickets]

    def close(self) -> None:
        """Switch the printer off."""
        self.client.stop()

    def go_offline(self) -> None:
        """Let it say that it is out of paper: one that is gone is only missed after a while."""
        self.client.code = "410 Out of paper"

    def come_back(self) -> None:
        """Put paper in, and let it say so."""
        polls = self.client.polls
        self.client.code = "200 OK"
        until = time.monotonic() + 5
        while self.client.polls < polls + 2 and time.monotonic() < until:
            time.sleep(0.01)

    def lose_next_answer(self) -> None:
        """Print, and never confirm it."""
        self.client.confirms_with, self.client.confirms_again = "", False
