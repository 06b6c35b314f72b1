"""Shows how an order comes out: `python -m tillbridge_printer.emulated.show ticket.png`.

Nothing is printed. With `--layout` a layout of your own is tried, with `--order` an order of yours.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path

from tillbridge.adapter import AdapterContext, Order, TicketMark
from tillbridge.model.order import parse_order
from tillbridge_printer.adapter import PrinterAdapter
from tillbridge_printer.emulated.escpos import Machine
from tillbridge_printer.emulated.sheet import Sheet
from tillbridge_printer.escpos import Language
from tillbridge_printer.journal import Journal
from tillbridge_printer.options import PrinterOptions
from tillbridge_printer.paper import Paper
from tillbridge_printer.states import PrinterState
from tillbridge_printer.ticket import sample_order


class MemoryLink:
    """The way to a printer in this process."""

    def __init__(self, language: Language) -> None:
        self.machine = Machine(dots=language.dots)
        self._language = language

    def look(self) -> PrinterState:
        """Say that all is well."""
        return PrinterState()

    def send(self, paper: Paper, key: str, begin: Callable[[], None]) -> None:
        """Print in memory."""
        begin()
        self.machine.feed(self._language.ticket(paper))

    def close(self) -> None:
        """Nothing is held."""


def sheets_of(
    order: Order,
    options: PrinterOptions,
    context: AdapterContext,
    *,
    marks: AbstractSet[TicketMark] = frozenset(),
    now: datetime | None = None,
) -> Sequence[Sheet]:
    """Return the paper that comes out for an order. Raises ValueError for a layout with a fault."""
    link = MemoryLink(Language(options.page_numbers, options.columns, options.paper_dots))
    moment = now or datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="show-") as folder:
        journal = Journal(Path(folder))
        printer = PrinterAdapter(options, context, link, journal, lambda: moment)
        printer.write_marked_ticket(order, order.id, marks)
        if trouble := printer.trouble():
            raise ValueError(trouble)
    return link.machine.sheets


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the picture. Return 0, or 1 where the layout or the order is not right."""
    parser = argparse.ArgumentParser(prog="show", description=__doc__)
    parser.add_argument("picture", type=Path, help="the PNG to write")
    parser.add_argument("--ticket", choices=("kitchen", "customer"), default="kitchen")
    parser.add_argument("--layout", type=Path, help="a layout of your own")
    parser.add_argument("--order", type=Path, help="an order as JSON, else a sample")
    parser.add_argument("--columns", type=int, default=48)
    given = parser.parse_args(arguments)
    layouts = {} if given.layout is None else {given.ticket: given.layout.resolve()}
    try:
        options = PrinterOptions.model_validate(
            {
                "printer": "file:none",
                "tickets": [given.ticket],
                "columns": given.columns,
                "layouts": layouts,
            }
        )
        order = (
            sample_order() if given.order is None else parse_order(json.loads(_text(given.order)))
        )
        context = AdapterContext("main", order.currency, "show", Path.cwd())
        (sheet,) = sheets_of(order, options, context)
    except (OSError, ValueError) as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    given.picture.write_bytes(sheet.png())
    return 0


def _text(path: Path) -> str:
    return path.read_text("utf-8")


if __name__ == "__main__":
    sys.exit(main())
