"""The way to an Epson printer's ePOS-Print service: one HTTP request for each ticket."""

import http.client
import ssl
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

from tillbridge.adapter import PosOffline, TicketOutcomeUnknown
from tillbridge.adapter.texts import _
from tillbridge_printer.epos import NOTHING_PRINTED, EposAnswer, answer_of, ticket_xml
from tillbridge_printer.escpos import Language
from tillbridge_printer.paper import Paper
from tillbridge_printer.places import EposPlace
from tillbridge_printer.states import PrinterState

_LOOK_S = 4.0
_CONNECT_S = 3.0
_LONGEST_ANSWER = 64 * 1024


class EposLink:
    """The service answers when the ticket is out, or with a code that says why not."""

    def __init__(
        self, place: EposPlace, language: Language, *, timeout_s: float, ca_file: Path | None
    ) -> None:
        self._place = place
        self._language = language
        self._timeout_s = timeout_s
        self._trust: ssl.SSLContext | None = None
        if place.url.startswith("https"):
            try:
                self._trust = ssl.create_default_context(cafile=ca_file)
            except OSError as failure:
                raise ValueError(
                    _("ca_file: {ca_file} cannot be used: {failure}").format(
                        ca_file=str(ca_file), failure=str(failure)
                    )
                ) from failure

    def look(self) -> PrinterState:
        """Send an empty ticket: it prints nothing, and is answered with the state."""
        connection = self._connected(_LOOK_S)
        try:
            answer = self._asked(connection, (), _LOOK_S)
        except (OSError, http.client.HTTPException, ValueError) as failure:
            raise PosOffline(
                _("The printer's ePOS-Print service fails: {failure}.").format(
                    failure=_words(failure)
                )
            ) from failure
        finally:
            connection.close()
        self._refused(answer)
        return answer.state

    def send(self, paper: Paper, key: str, begin: Callable[[], None]) -> None:
        """Print a ticket."""
        state = self.look()
        if not state.prints:
            raise PosOffline(state.text, fix=state.fix)
        connection = self._connected(self._timeout_s)
        try:
            begin()
            answer = self._asked(connection, paper, self._timeout_s)
        except (OSError, http.client.HTTPException, ValueError) as failure:
            raise TicketOutcomeUnknown(
                _("The printer did not say what became of the ticket ({failure}).").format(
                    failure=_words(failure)
                )
            ) from failure
        finally:
            connection.close()
        if answer.success:
            return
        self._refused(answer)
        raise TicketOutcomeUnknown(
            _("In the middle of a ticket: {text}").format(
                text=answer.state.text or _("code {code}.").format(code=answer.code)
            )
        )

    def close(self) -> None:
        """Nothing is held between tickets."""

    def _connected(self, timeout_s: float) -> http.client.HTTPConnection:
        parts = urlsplit(self._place.url)
        host, port = parts.hostname or "", parts.port
        connection = (
            http.client.HTTPConnection(host, port, timeout=_CONNECT_S)
            if self._trust is None
            else http.client.HTTPSConnection(host, port, timeout=_CONNECT_S, context=self._trust)
        )
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as failure:
            raise PosOffline(
                _("The certificate of the printer at {url} is not trusted ({why}).").format(
                    url=self._place.url, why=failure.verify_message
                ),
                fix=_("Save the printer's certificate, and name the file as ca_file."),
            ) from failure
        except OSError as failure:
            raise PosOffline(
                _("The printer at {url} does not answer ({why}).").format(
                    url=self._place.url, why=failure.strerror or str(failure)
                ),
                fix=_("Check that the printer is on and in the network."),
            ) from failure
        # Its own time-out comes first, so that it says what became of the ticket.
        connection.sock.settimeout(timeout_s + 1)
        return connection

    def _asked(
        self, connection: http.client.HTTPConnection, paper: Paper, timeout_s: float
    ) -> EposAnswer:
        language = self._language
        body = ticket_xml(paper, tuple(language.pages), language.columns, language.dots)
        device = quote(self._place.device, safe="")
        connection.request(
            "POST",
            f"/cgi-bin/epos/service.cgi?devid={device}&timeout={int(timeout_s * 1000)}",
            body,
            {"Content-Type": "text/xml; charset=utf-8", "SOAPAction": '""'},
        )
        response = connection.getresponse()
        data = response.read(_LONGEST_ANSWER)
        if response.status in {401, 403, 404}:
            raise PosOffline(
                _("The printer answers {status}.").format(status=response.status),
                fix=_("Switch on ePOS-Print in the printer's settings."),
            )
        if response.status != 200:
            raise ValueError(_("it answers {status}").format(status=response.status))
        return answer_of(data)

    def _refused(self, answer: EposAnswer) -> None:
        if answer.code in NOTHING_PRINTED:
            raise PosOffline(
                _("The printer {what} ({code}).").format(
                    what=NOTHING_PRINTED[answer.code], code=answer.code
                )
            )


def _words(failure: Exception) -> str:
    """Return what a failure says; what our own reading of the answer says stays a text."""
    own = type(failure) is ValueError
    return failure.args[0] if own else str(failure) or type(failure).__name__
