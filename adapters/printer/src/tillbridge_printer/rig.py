"""A printer for the conformance suite: an emulated one on a real socket."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from tillbridge.adapter import Adapter
from tillbridge.adapter.conformance import Rig, RigTicket, TicketLine
from tillbridge_printer.adapter import ADAPTER
from tillbridge_printer.emulated.epos_server import EposServer
from tillbridge_printer.emulated.escpos_server import EscPosServer
from tillbridge_printer.ticket import BANNERS

_KITCHEN = """ORDER {{ id }}
TYPE {{ type }}
NOTE {{ note }}
TOTAL {{ data.total_amount }}
TAX {{ data.tax }}
{% for line in lines %}
{% set sent = data["items"][loop.index0] %}
LINE {{ line.quantity }} {{ line.external_id }} {{ sent.get("variant_external_id") or "-" }}
PRICE {{ sent.unit_price }}
{% for option in line.options %}
OPTION {{ option.quantity }} {{ sent.options[loop.index0].get("external_id") }}
{% endfor %}
{% endfor %}
"""
_WORDS = ("ORDER", "TYPE", "NOTE", "TOTAL", "TAX", "LINE", "PRICE", "OPTION")
_CANCELLED = "CANCELLED {{ id }}\n"


class PaperRig(Rig):
    """Any printer; its layouts say in plain words what the suite wants to know."""

    adapter: ClassVar[Adapter] = ADAPTER
    ascii_only: ClassVar[bool] = True

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
            printed = _printed(lines)
            if "ORDER" in dict(printed):
                ticket = _ticket(printed)
                found.append(
                    replace(
                        ticket,
                        cancelled=ticket.key in off,
                        possible_duplicate=next(iter(BANNERS.values())) in lines,
                    )
                )
        return found

    def state(self) -> object:
        """Return the files, and the paper."""
        return super().state(), list(self.papers())


def _printed(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return what stands on a sheet: the word that begins a line, and the rest, however wrapped."""
    found: list[tuple[str, str]] = []
    for line in lines:
        word, _space, rest = line.partition(" ")
        if word in _WORDS:
            found.append((word, rest.strip()))
        elif found and line.strip():
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return found


def _ticket(printed: Sequence[tuple[str, str]]) -> RigTicket:
    texts, lines = dict(printed), list[TicketLine]()
    for word, text in printed:
        match word:
            case "LINE":
                quantity, item, variant = text.split()
                lines.append(TicketLine(item, int(quantity), None if variant == "-" else variant))
            case "PRICE":
                lines[-1] = replace(lines[-1], unit_price=int(text))
            case "OPTION":
                quantity, option = text.split()
                options = {**lines[-1].options, option: int(quantity)}
                lines[-1] = replace(lines[-1], options=options)
    return RigTicket(
        texts["ORDER"],
        tuple(lines),
        note=texts["NOTE"],
        order_type=texts["TYPE"],
        total=int(texts["TOTAL"]),
        tax=int(texts["TAX"]),
    )


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
