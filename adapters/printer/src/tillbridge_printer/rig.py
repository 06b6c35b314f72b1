"""A printer for the conformance suite: an emulated one on a real socket."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tillbridge.adapter import Adapter
from tillbridge.adapter.conformance import Rig, RigTicket
from tillbridge_printer.adapter import ADAPTER
from tillbridge_printer.emulated.epos_server import EposServer
from tillbridge_printer.emulated.escpos_server import EscPosServer
from tillbridge_printer.ticket import BANNERS

_KITCHEN = """ORDER {{ id }}
{% for line in lines %}
LINE {{ line.quantity }} {{ line.external_id }}
{% endfor %}
"""
_CANCELLED = "CANCELLED {{ id }}\n"


class PaperRig(Rig):
    """Any printer; its layouts say in plain words what the suite wants to know."""

    adapter: ClassVar[Adapter] = ADAPTER

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "kitchen.txt").write_text(_KITCHEN, "utf-8")
        (folder / "cancelled.txt").write_text(_CANCELLED, "utf-8")

    def options(self) -> Mapping[str, Any]:
        """Name our layouts."""
        return {
            "layouts": {"kitchen": "kitchen.txt", "cancelled": "cancelled.txt"},
            "timeout_s": 5,
        }

    @abstractmethod
    def papers(self) -> Sequence[str]:
        """Return what stands on each paper that came out."""

    def tickets(self) -> Sequence[RigTicket]:
        """Read the paper that came out."""
        sheets = [text.splitlines() for text in self.papers()]
        off = {lines[0].split()[1] for lines in sheets if lines[0].startswith("CANCELLED ")}
        found = []
        for lines in sheets:
            keys = [line.split()[1] for line in lines if line.startswith("ORDER ")]
            if keys:
                ordered = [line.split() for line in lines if line.startswith("LINE ")]
                found.append(
                    RigTicket(
                        keys[0],
                        tuple((words[2], int(words[1])) for words in ordered),
                        cancelled=keys[0] in off,
                        possible_duplicate=next(iter(BANNERS.values())) in lines,
                    )
                )
        return found

    def state(self) -> object:
        """Return the files, and the paper."""
        return super().state(), list(self.papers())


class PrinterRig(PaperRig):
    """An ESC/POS printer on the network."""

    scheme: ClassVar[str] = "tcp"
    kind: ClassVar[type[EscPosServer | EposServer]] = EscPosServer

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = self.kind()

    def options(self) -> Mapping[str, Any]:
        """Name the printer, and our layouts."""
        printer = f"{self.scheme}://127.0.0.1:{self.server.port}"
        return {**super().options(), "printer": printer}

    def papers(self) -> Sequence[str]:
        """Return what came out."""
        return [sheet.text for sheet in self.server.machine.sheets]

    def close(self) -> None:
        """Switch the printer off."""
        self.server.switch_off()

    def go_offline(self) -> None:
        """Pull the plug."""
        self.server.switch_off()

    def come_back(self) -> None:
        """Plug it in again."""
        self.server.switch_on()

    def lose_next_answer(self) -> None:
        """Print, and hang up instead of confirming it."""
        self.server.loses_answer = True

    def answer_slowly(self, delay_s: float) -> None:
        """Say nothing for longer than anybody waits."""
        self.server.mute = delay_s > 0


RIG = PrinterRig
