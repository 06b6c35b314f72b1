"""The way to a Star printer that polls us: each ticket is a picture that it fetches.

A picture, because every model takes PNG, and no model has all scripts.
"""

import time
from collections.abc import Callable, Iterator

from tillbridge.adapter import PosOffline, TicketOutcomeUnknown
from tillbridge.adapter.texts import _
from tillbridge_printer.cloud_listener import listen, release
from tillbridge_printer.cloud_queue import Job, JobState, PrintQueue
from tillbridge_printer.journal import Journal
from tillbridge_printer.paper import Cut, Paper, Part
from tillbridge_printer.places import CloudPlace
from tillbridge_printer.raster import draw_paper, png
from tillbridge_printer.states import PrinterState

_GONE_S = 30.0
_FIRST_POLL_S = 6.0  # printers poll every five seconds, unless they are told otherwise


class CloudLink:
    """Lays out jobs, and waits until the printer has confirmed them."""

    def __init__(
        self, place: CloudPlace, token: str, dots: int, journal: Journal, *, timeout_s: float
    ) -> None:
        self._place = place
        self._token = token
        self._dots = dots
        self._journal = journal
        self._timeout_s = timeout_s
        self._queue: PrintQueue | None = None
        self._first_poll_by = 0.0

    def look(self) -> PrinterState:
        """Return what the printer said when it last polled. Raises PosOffline where it does not."""
        ago, state = self._listening().seen(self._first_poll_by)
        if ago is None or ago > _GONE_S:
            silent = (
                _("The printer has not called port {port} yet.")
                if ago is None
                else _("The printer has not called port {port} for {seconds} seconds.")
            )
            raise PosOffline(
                silent.format(port=self._place.port, seconds=round(ago or 0)),
                fix=_(
                    "Check that the printer is on, and that its CloudPRNT address ends in the "
                    "token."
                ),
            )
        return state

    def send(self, paper: Paper, key: str, begin: Callable[[], None]) -> None:
        """Offer each ticket as a job, one after the other."""
        state = self.look()
        if not state.prints:
            raise PosOffline(state.text, fix=state.fix)
        until = time.monotonic() + self._timeout_s
        tickets = list(_tickets(paper))
        for number, ticket in enumerate(tickets, 1):
            job = Job(
                _token_of(key, number, len(tickets)), png(draw_paper(ticket, self._dots)), begin
            )
            came = self._listening().offer(job, until)
            if job.failure is not None:
                raise job.failure
            if came is not JobState.PRINTED:
                raise _failure(came, job.code, first=number == 1)

    def close(self) -> None:
        """Give the port up."""
        if self._queue is not None:
            self._queue = None
            release(self._place, self._token)

    def _listening(self) -> PrintQueue:
        if self._queue is None:
            try:
                self._queue = listen(self._place, self._token)
            except OSError as failure:
                raise PosOffline(
                    _("Port {port} for the printer cannot be opened: {why}.").format(
                        port=self._place.port, why=failure.strerror or str(failure)
                    )
                ) from failure
            self._queue.on_printed = self._noted
            self._first_poll_by = time.monotonic() + _FIRST_POLL_S
        return self._queue

    def _noted(self, token: str) -> None:
        """Note a job that was printed, be it that nobody waits for it any more."""
        key = _key_of(token)
        if key is not None and self._journal.begun(key) and self._journal.printed(key) is None:
            self._journal.done(key, "paper")


def _tickets(paper: Paper) -> Iterator[list[Part]]:
    """Yield each ticket without its cut: the printer is told to cut after each picture."""
    parts: list[Part] = []
    for part in paper:
        if isinstance(part, Cut):
            yield parts
            parts = []
        else:
            parts.append(part)
    if parts:
        yield parts


def _token_of(key: str, number: int, count: int) -> str:
    """Return a job's token, from which the order can be told when it comes back alone."""
    return f"{key.encode('utf-8', 'surrogatepass').hex()}-{number}-{count}"


def _key_of(token: str) -> str | None:
    """Return the order of a job; None where it was not the last of its tickets."""
    name, _dash, place = token.partition("-")
    number, _dash, count = place.partition("-")
    try:
        return bytes.fromhex(name).decode("utf-8", "surrogatepass") if number == count else None
    except ValueError:
        return None


def _failure(state: JobState, code: str, *, first: bool) -> Exception:
    if state is JobState.OFFERED:
        text = _("The printer has not fetched the ticket in time.")
    elif state is JobState.TAKEN:
        return TicketOutcomeUnknown(_("The printer has fetched the ticket, and not confirmed it."))
    elif state is JobState.REFUSED:
        text = _("The printer could not load the ticket ({code}).").format(code=code)
    else:
        return TicketOutcomeUnknown(
            _("In the middle of a ticket: {text}").format(text=_("code {code}.").format(code=code))
        )
    return PosOffline(text) if first else TicketOutcomeUnknown(text)
