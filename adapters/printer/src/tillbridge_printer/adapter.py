"""The adapter: orders on paper, each once, and marked where nobody can tell whether it was."""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, tzinfo

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    Health,
    Order,
    PosFailure,
    PosOffline,
    Ticket,
    TicketMark,
    TicketOutcomeUnknown,
)
from tillbridge.adapter.texts import _
from tillbridge_printer.journal import Journal
from tillbridge_printer.layout import Layout
from tillbridge_printer.link import Link
from tillbridge_printer.links import link_to
from tillbridge_printer.options import PrinterOptions
from tillbridge_printer.paper import Align, Cut, Feed, Line, Part, Style
from tillbridge_printer.ticket import BANNERS, Clockwork, sample_order, values_of

JOURNAL = ".tillbridge-printer"
_CANCELLED = "cancelled:"
_BANNER = Style(align=Align.CENTRE, bold=True, invert=True, wide=2, tall=2)


class PrinterAdapter:
    """Prints orders. What it remembers is its journal: nothing can be read off paper."""

    def __init__(
        self,
        options: PrinterOptions,
        context: AdapterContext,
        link: Link,
        journal: Journal,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = context.store
        self._link = link
        self._journal = journal
        self._now = now
        self._trouble = ""
        self._zone = _zone(options.timezone)
        self._hold_s = options.hold_older_than_min * 60
        self._tickets = tuple(dict.fromkeys(options.tickets))
        self._layouts = {
            name: _layout(name, options, context) for name in (*self._tickets, "cancelled")
        }
        sample = values_of(sample_order(), self._store, self._clockwork())
        for layout in self._layouts.values():
            layout.parts(sample)  # what is wrong with it is told at start, not at the first order

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Print the order, unless it was printed or may have been."""
        if (ticket := self.find_ticket(key)) is not None:
            return ticket
        return self._print(order, key, frozenset())

    def find_ticket(self, key: str) -> Ticket | None:
        """Return the ticket that came out. Raises TicketOutcomeUnknown where it was only begun."""
        try:
            note = self._journal.printed(key)
            begun = note is None and self._journal.begun(key)
        except OSError as failure:
            raise _no_journal(failure) from failure
        if begun:
            raise TicketOutcomeUnknown(
                _("The ticket was sent to the printer, which did not say that it came out.")
            )
        return None if note is None else Ticket(note)

    def write_marked_ticket(self, order: Order, key: str, marks: AbstractSet[TicketMark]) -> Ticket:
        """Print the order with a banner for each mark, unless it surely was printed."""
        try:
            ticket = self.find_ticket(key)
        except TicketOutcomeUnknown:
            ticket, marks = None, {*marks, TicketMark.POSSIBLE_DUPLICATE}
        return ticket or self._print(order, key, marks)

    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        """Print that the order is off, once, if it was printed or may have been."""
        try:
            touched = self._journal.begun(key)
            printed = self._journal.printed(_CANCELLED + key)
        except OSError as failure:
            raise _no_journal(failure) from failure
        if not touched or printed is not None:
            return
        values = values_of(order, self._store, self._clockwork(), reason=reason)
        paper = _finished([self._parts("cancelled", values)])
        self._send(paper, _CANCELLED + key, "cancelled")

    def health(self) -> Health:
        """Ask the printer how it is; nothing is printed."""
        try:
            state = self._link.look()
        except PosOffline as failure:
            return Health(online=False, detail=failure.message, fix=failure.fix)
        return Health(online=state.prints, detail=state.text, fix=state.fix)

    def trouble(self) -> str:
        """Return what is wrong with a layout of the store's own; orders print with ours."""
        return self._trouble

    def hold_older_than_s(self) -> float:
        """Return what the option says."""
        return self._hold_s

    def close(self) -> None:
        """Let go of the printer."""
        self._link.close()

    def _print(self, order: Order, key: str, marks: AbstractSet[TicketMark]) -> Ticket:
        values = values_of(order, self._store, self._clockwork())
        banners = [text for mark, text in BANNERS.items() if mark in marks]
        tickets = [
            [*(Line(text, style=_BANNER) for text in banners), *self._parts(name, values)]
            for name in self._tickets
        ]
        note = ", ".join(("paper", *(text.lower() for text in banners[:1])))
        self._send(_finished(tickets), key, note)
        return Ticket(note)

    def _parts(self, name: str, values: dict[str, object]) -> list[Part]:
        """Fill a layout in. One of the store's own that does not fit gives way to ours."""
        try:
            parts = self._layouts[name].parts(values)
        except ValueError as failure:
            self._trouble = _("The layout does not fit an order: {failure}").format(
                failure=failure.args[0]
            )
            return Layout.shipped(name).parts(values)
        self._trouble = ""
        return parts

    def _send(self, paper: list[Part], key: str, note: str) -> None:
        """Print, and keep the journal: begun, printed, or never begun after all."""
        journal = self._journal
        try:
            was_begun = journal.begun(key)
        except OSError as failure:
            raise _no_journal(failure) from failure

        def begin() -> None:
            try:
                journal.begin(key)
            except OSError as failure:
                raise _no_journal(failure) from failure

        try:
            self._link.send(paper, key, begin)
        except PosOffline:
            if not was_begun:
                self._noted(lambda: journal.forget(key))
            raise
        self._noted(lambda: journal.done(key, note))

    def _noted(self, note: Callable[[], None]) -> None:
        try:
            note()
        except OSError as failure:
            raise TicketOutcomeUnknown(
                _("The printer's journal cannot be written: {why}.").format(why=failure.strerror)
            ) from failure

    def _clockwork(self) -> Clockwork:
        return Clockwork(self._now(), self._zone)


def _finished(tickets: Iterable[list[Part]]) -> list[Part]:
    return [part for ticket in tickets for part in (*ticket, Feed(1), Cut())]


def _layout(name: str, options: PrinterOptions, context: AdapterContext) -> Layout:
    own = {str(key): path for key, path in options.layouts.items()}.get(name)
    return Layout.shipped(name) if own is None else Layout.of(context.base_dir / own)


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    from zoneinfo import ZoneInfo  # noqa: PLC0415 -- few files name a time zone

    return ZoneInfo(name)


def _no_journal(failure: OSError) -> PosFailure:
    return PosOffline(
        _("The printer's journal cannot be used: {why}.").format(why=failure.strerror)
    )


def _open(options: PrinterOptions, context: AdapterContext) -> PrinterAdapter:
    journal = Journal(context.base_dir / JOURNAL / context.store)
    return PrinterAdapter(options, context, link_to(options, context, journal), journal)


ADAPTER = Adapter(
    name="printer",
    summary="Receipt printers: ESC/POS, Epson ePOS-Print, Star CloudPRNT",
    options=PrinterOptions,
    open=_open,
)
