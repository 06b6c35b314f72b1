"""Alerts by e-mail: the standard library's SMTP, in a thread, each step with a time-out."""

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import formatdate

from tillbridge.alerts.message import Message
from tillbridge.alerts.ways import NotTold
from tillbridge.config import EmailSettings
from tillbridge.core.i18n import _
from tillbridge.core.trust import system_trust

Secret = Callable[[], str]


class EmailWay:
    """Sends through one mail server; `password` is read when it is needed. Raises NotTold."""

    name = "email"

    def __init__(self, settings: EmailSettings, password: Secret | None) -> None:
        self._settings = settings
        self._password = password

    async def send(self, message: Message) -> None:
        """Send to everybody at once; done when the mail server has taken it for one of them."""
        password = self._password() if self._password else None
        await asyncio.to_thread(self._deliver, message, password)

    async def probe(self) -> None:
        """Sign in at the mail server, and leave. Raises NotTold."""
        password = self._password() if self._password else None
        await asyncio.to_thread(self._sign_in, password)

    def _letter(self, message: Message) -> EmailMessage:
        letter = EmailMessage()
        letter["From"] = self._settings.sender
        letter["To"] = ", ".join(self._settings.to)
        letter["Subject"] = message.subject
        letter["Date"] = formatdate(localtime=True)
        # The same for the same message: a repetition after a lost answer is shown once.
        letter["Message-ID"] = f"<{message.id}@{self._settings.sender.rpartition('@')[2]}>"
        letter["Auto-Submitted"] = "auto-generated"  # nobody's holiday answers it (RFC 3834)
        letter.set_content(message.text)
        return letter

    def _sign_in(self, password: str | None) -> None:
        try:
            with self._connected() as server:
                self._log_in(server, password)
                server.noop()
        except (OSError, ValueError) as failure:
            text, fix = _in_words(failure, self._settings)
            raise NotTold(text, fix=fix) from failure

    def _log_in(self, server: smtplib.SMTP, password: str | None) -> None:
        if self._settings.username is not None and password is not None:
            server.login(self._settings.username, password)

    def _deliver(self, message: Message, password: str | None) -> None:
        settings = self._settings
        try:
            letter = self._letter(message)
            with self._connected() as server:
                self._log_in(server, password)
                server.send_message(letter)
        except (OSError, ValueError) as failure:  # smtplib's and ssl's failures are OSErrors
            text, fix = _in_words(failure, settings)
            raise NotTold(text, fix=fix) from failure

    def _connected(self) -> smtplib.SMTP:
        settings = self._settings
        if settings.tls == "tls":
            return smtplib.SMTP_SSL(
                settings.host,
                settings.port,
                timeout=settings.timeout_s,
                context=system_trust(),
            )
        server = smtplib.SMTP(settings.host, settings.port, timeout=settings.timeout_s)
        if settings.tls == "starttls":
            try:
                server.starttls(context=system_trust())
            except BaseException:
                server.close()
                raise
        return server


def _in_words(failure: Exception, settings: EmailSettings) -> tuple[str, str]:
    """Return what went wrong and what to do; never the password."""
    host, port = settings.host, settings.port
    match failure:
        case smtplib.SMTPAuthenticationError():
            return (
                _("The mail server {host} does not accept the user name and password.").format(
                    host=host
                ),
                _("Check username and password in [alerts.email]."),
            )
        case smtplib.SMTPRecipientsRefused():
            return (
                _("The mail server {host} takes none of the addresses in to.").format(host=host),
                _("Check to in [alerts.email]."),
            )
        case ssl.SSLError():
            return (
                _("No encrypted connection to {host}:{port} was made: {detail}").format(
                    host=host, port=port, detail=failure.reason or failure
                ),
                _('Check port and tls: "starttls" is port 587, "tls" is port 465.'),
            )
        case smtplib.SMTPException() if not isinstance(failure, smtplib.SMTPServerDisconnected):
            return (
                _("The mail server {host} refused: {detail}").format(
                    host=host, detail=_detail(failure)
                ),
                _("Check [alerts.email], then try: tillbridge alerts test"),
            )
    return (
        _("The mail server {host}:{port} cannot be reached: {detail}").format(
            host=host, port=port, detail=_detail(failure)
        ),
        _("Check host and port in [alerts.email], and the internet connection."),
    )


def _detail(failure: Exception) -> str:
    if isinstance(failure, smtplib.SMTPResponseException):
        told = failure.smtp_error
        text = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        return f"{failure.smtp_code} {text}"
    if isinstance(failure, socket.gaierror):
        return _("there is no such host")
    if TimeoutError in {type(failure), type(failure.__context__)}:
        return _("it did not answer in time")
    return (failure.strerror if isinstance(failure, OSError) else None) or str(failure)
