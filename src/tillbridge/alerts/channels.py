"""The ways in which alerts reach people: e-mail, webhook, and whatever apprise knows.

And the heartbeat: an address elsewhere is asked while the bridge is well, so that silence speaks.
"""

import asyncio
import contextlib
import hashlib
import hmac
import json
import smtplib
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from email.message import EmailMessage
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import aiohttp
from pydantic import SecretStr

from tillbridge.alerts.episodes import Message
from tillbridge.config.bridge import AlertSettings, AppriseSettings, EmailSettings, WebhookSettings
from tillbridge.config.secrets import SecretSource, VaultOfSettings, resolve_secret
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger, learn_secret
from tillbridge.core.network import http_session, system_trust
from tillbridge.core.scheduler import Scheduler

if TYPE_CHECKING:
    from apprise import Apprise


class NotSent(BridgeError):
    """A channel failed: it is certain, or likely, that nobody has received the message."""


class Channel(Protocol):
    """A way of sending alerts to people."""

    @property
    def name(self) -> str:
        """Its name in the configuration: email, webhook, apprise."""
        ...

    async def send(self, message: Message) -> None:
        """Send the message. Raises NotSent, ConfigError (a secret that cannot be had)."""
        ...

    async def probe(self) -> None:
        """Find out whether it would work, without sending an alert. Raises NotSent, ConfigError."""
        ...


Secret = Callable[[], str]


class EmailChannel:
    """Sends through one mail server; `password` is read when it is needed. Raises NotSent."""

    name = "email"

    def __init__(self, settings: EmailSettings, password: Secret | None) -> None:
        self._settings = settings
        self._password = password

    async def send(self, message: Message) -> None:
        """Send to everybody at once; done when the mail server has taken it for one of them."""
        await self._talk(message)

    async def probe(self) -> None:
        """Sign in at the mail server, and leave. Raises NotSent."""
        await self._talk(None)

    async def _talk(self, message: Message | None) -> None:
        password = self._password() if self._password else None
        await asyncio.to_thread(self._deliver, message, password)

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

    def _deliver(self, message: Message | None, password: str | None) -> None:
        """Sign in, and send the message if there is one."""
        settings = self._settings
        try:
            letter = None if message is None else self._letter(message)
            with self._connected() as server:
                if settings.username is not None and password is not None:
                    server.login(settings.username, password)
                if letter is None:
                    server.noop()
                else:
                    server.send_message(letter)
        except (OSError, ValueError) as failure:  # smtplib's and ssl's failures are OSErrors
            text, fix = _explain(failure, settings)
            raise NotSent(text, fix=fix) from failure

    def _connected(self) -> smtplib.SMTP:
        settings = self._settings
        at = settings.host, settings.port
        if settings.tls == "tls":
            return smtplib.SMTP_SSL(*at, timeout=settings.timeout_s, context=system_trust())
        server = smtplib.SMTP(*at, timeout=settings.timeout_s)
        if settings.tls == "starttls":
            try:
                server.starttls(context=system_trust())
            except BaseException:
                server.close()
                raise
        return server


def _explain(failure: Exception, settings: EmailSettings) -> tuple[str, str]:
    """Return what went wrong and what to do; never the password."""
    detail: object = _detail(failure)
    match failure:
        case smtplib.SMTPAuthenticationError():
            text = _("The mail server {host} does not accept the user name and password.")
            fix = _("Check username and password in [alerts.email].")
        case smtplib.SMTPRecipientsRefused():
            text = _("The mail server {host} accepts none of the addresses in to.")
            fix = _("Check to in [alerts.email].")
        case ssl.SSLError():
            text = _("No encrypted connection to {host}:{port} could be made: {detail}")
            fix = _('Check port and tls: "starttls" is port 587, "tls" is port 465.')
            detail = failure.reason or failure
        case smtplib.SMTPException() if not isinstance(failure, smtplib.SMTPServerDisconnected):
            text = _("The mail server {host} refused the message: {detail}")
            fix = _("Check [alerts.email], then try: tillbridge alerts test")
        case _:
            text = _("The mail server {host}:{port} cannot be reached: {detail}")
            fix = _("Check host and port in [alerts.email], and the internet connection.")
    return text.format(host=settings.host, port=settings.port, detail=detail), fix


def _detail(failure: Exception) -> str:
    if isinstance(failure, smtplib.SMTPResponseException):
        error = failure.smtp_error
        text = error.decode("utf-8", "replace") if isinstance(error, bytes) else str(error)
        return f"{failure.smtp_code} {text}"
    if isinstance(failure, socket.gaierror):
        return _("no such host")
    if TimeoutError in {type(failure), type(failure.__context__)}:
        return _("no answer in time")
    return (failure.strerror if isinstance(failure, OSError) else None) or str(failure)


SIGNATURE = "X-Tillbridge-Signature"
ALERT_ID = "X-Tillbridge-Alert-Id"


class WebhookChannel:
    """Posts to one address; the address and the secret are read when they are needed."""

    name = "webhook"

    def __init__(self, settings: WebhookSettings, url: Secret, secret: Secret | None) -> None:
        self._settings = settings
        self._url = url
        self._secret = secret

    async def send(self, message: Message) -> None:
        """Post the message; done with any 2xx. Raises NotSent."""
        body = json.dumps(body_of(message, self._settings.format), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", ALERT_ID: message.id}
        if self._secret is not None:
            key = self._secret().encode()
            headers[SIGNATURE] = hmac.new(key, body, hashlib.sha256).hexdigest()
        url = self._url()
        fix = _("Check url in [alerts.webhook], and the internet connection.")
        # What the address is stays untold in errors: of a chat's webhook it is the secret.
        try:
            async with (
                http_session(url, self._settings.timeout_s) as http,
                http.post(url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                status = answer.status
        except TimeoutError as failure:
            text = _("The webhook did not answer within {n} seconds.")
            raise NotSent(text.format(n=f"{self._settings.timeout_s:g}"), fix=fix) from failure
        except aiohttp.InvalidURL as failure:
            fix = _("Correct url in [alerts.webhook]: it has to begin with https:// or http://.")
            raise NotSent(_("The webhook's address is not a web address."), fix=fix) from failure
        except (aiohttp.ClientError, OSError) as failure:
            text = _("The webhook cannot be reached ({kind}).")
            raise NotSent(text.format(kind=type(failure).__name__), fix=fix) from failure
        if not 200 <= status < 300:
            raise NotSent(
                _("The webhook answered {status}.").format(status=status),
                fix=_("Check url and format in [alerts.webhook]."),
            )

    async def probe(self) -> None:
        """Find the server and shake hands; whatever is posted would be a message."""
        where = _("Check url in [alerts.webhook], and the internet connection.")
        await reach(self._url(), timeout_s=self._settings.timeout_s, fix=where)
        if self._secret is not None:
            self._secret()


def body_of(message: Message, form: str) -> dict[str, Any]:
    """Return the body in one of the formats."""
    if form == "discord":
        return {"content": message.text[:2000], "allowed_mentions": {"parse": []}}
    if form in {"slack", "teams"}:
        return {"text": message.text}
    return {
        "id": message.id,
        "kind": message.kind,
        "subject": message.subject,
        "text": message.text,
        **message.facts,
    }


_MISSING = _("apprise is not installed, which [alerts.apprise] needs.")
_INSTALL = _("Install it beside the bridge: pip install 'tillbridge[apprise]'")


class AppriseChannel:
    """Sends to all addresses; they are read when they are needed, and never shown."""

    name = "apprise"

    def __init__(self, settings: AppriseSettings, urls: Sequence[Callable[[], str]]) -> None:
        self._settings = settings
        self._urls = urls

    async def send(self, message: Message) -> None:
        """Send to all of them. Raises NotSent if one fails, ConfigError without apprise."""
        sender = self._sender()
        body = "\n".join(message.lines)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                accepted = await sender.async_notify(body=body, title=message.subject)
        except TimeoutError as failure:
            text = _("apprise did not finish within {n} seconds.")
            raise NotSent(
                text.format(n=f"{self._settings.timeout_s:g}"),
                fix=_("Check the internet connection, and the addresses in [alerts.apprise]."),
            ) from failure
        except Exception as failure:
            raise NotSent(
                _("apprise failed: {kind}").format(kind=type(failure).__name__),
                fix=_("Update it: pip install --upgrade apprise"),
            ) from failure
        if not accepted:
            raise NotSent(
                _("apprise could not notify every address."),
                fix=_("Check the addresses in [alerts.apprise] with: tillbridge alerts test"),
            )

    async def probe(self) -> None:
        """Check that apprise is installed and knows every address; sends nothing.

        Raises NotSent, ConfigError.
        """
        await asyncio.to_thread(self._sender)

    def _sender(self) -> "Apprise":
        try:
            import apprise  # noqa: PLC0415 -- an extra, and heavy: only where it is wanted
        except ImportError as failure:
            raise ConfigError(_MISSING, fix=_INSTALL) from failure
        sender = apprise.Apprise()
        for place, url in enumerate(self._urls):
            if not sender.add(url()):
                text = _("Address {n} of [alerts.apprise] is not one that apprise knows.")
                raise NotSent(
                    text.format(n=place + 1),
                    fix=_("Compare it with the list of services in apprise's manual."),
                )
        return sender


async def reach(url: str, *, timeout_s: float, fix: str) -> None:
    """Connect to the address's server and go again; nothing is asked of it. Raises NotSent.

    Texts name the host only: the rest of the address may be a secret.
    """
    try:
        parts = urlsplit(url)
        tls = parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or (443 if tls else 80)
    except ValueError:
        raise NotSent(_("The heartbeat's address is not a web address."), fix=fix) from None
    try:
        async with asyncio.timeout(timeout_s):
            _reader, writer = await asyncio.open_connection(
                host, port, ssl=system_trust() if tls else None
            )
    except TimeoutError:
        raise NotSent(_("{host} does not answer.").format(host=host), fix=fix) from None
    except ssl.SSLError as failure:
        text = _("No encrypted connection to {host} could be made: {detail}")
        raise NotSent(
            text.format(host=host, detail=failure.reason or type(failure).__name__), fix=fix
        ) from failure
    except (OSError, ValueError) as failure:  # ValueError: a host that cannot be a name
        detail = (failure.strerror if isinstance(failure, OSError) else None) or ""
        text = _("{host} cannot be reached: {detail}")
        raise NotSent(
            text.format(host=host, detail=detail or type(failure).__name__), fix=fix
        ) from failure
    writer.close()
    with contextlib.suppress(OSError):  # who hangs up first does not matter
        await writer.wait_closed()


def channels_of(
    alerts: AlertSettings, base_dir: Path, from_vault: VaultOfSettings | None = None
) -> list[Channel]:
    """Return the channels that are configured; `from_vault` is where their secrets may be."""
    secret = partial(_reader, base_dir, from_vault)
    channels: list[Channel] = []
    if (email := alerts.email) is not None:
        given = email.password
        password = None if given is None else secret(given, "alerts.email.password")
        channels.append(EmailChannel(email, password))
    if (hook := alerts.webhook) is not None:
        url = secret(hook.url, "alerts.webhook.url")
        key = None if hook.secret is None else secret(hook.secret, "alerts.webhook.secret")
        channels.append(WebhookChannel(hook, url, key))
    if alerts.apprise is not None:
        urls = [
            secret(url, f"alerts.apprise.urls.{place}")
            for place, url in enumerate(alerts.apprise.urls)
        ]
        channels.append(AppriseChannel(alerts.apprise, urls))
    return channels


def _reader(
    base_dir: Path, from_vault: VaultOfSettings | None, source: SecretStr | SecretSource, key: str
) -> Callable[[], str]:
    in_vault = None if from_vault is None else partial(from_vault, key)

    def read() -> str:
        # Read when it is needed, so that a new one counts without a restart.
        found = resolve_secret(source, key=key, base_dir=base_dir, from_vault=in_vault)
        value = found.get_secret_value()
        learn_secret(value)
        return value

    return read


log = get_logger()

_TIMEOUT_S = 10.0


class Heartbeat:
    """Asks `url` every `every_s` seconds while `is_well` says so.

    Otherwise it asks `url` with `fail` at the end of its path, or nobody where `fail` is "".
    Failures are logged when they begin and end; nobody else can be notified.
    """

    def __init__(
        self, url: str, *, every_s: float, fail: str, is_well: Callable[[], Awaitable[bool]]
    ) -> None:
        self._url = url
        parts = urlsplit(url)
        failed = parts._replace(path=parts.path.rstrip("/") + fail)
        self._fail_url = failed.geturl() if fail else None
        self._every_s = every_s
        self._is_well = is_well
        self._delivered = True
        self._well = True

    def plan(self, scheduler: Scheduler) -> None:
        """Let it beat every `every_s` seconds."""
        scheduler.every("heartbeat", self._every_s, self.beat)

    async def beat(self) -> None:
        """Beat once."""
        well = await self._is_well()
        if well is not self._well:
            self._well = well
            log.warning("heartbeat.well" if well else "heartbeat.unwell")
        url = self._url if well else self._fail_url
        if url is None:
            return
        try:
            timeout_s = min(_TIMEOUT_S, self._every_s)
            async with http_session(url, timeout_s) as http, http.get(url) as answer:
                failure = "" if answer.status < 400 else f"HTTP {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            failure = type(problem).__name__
        if (not failure) is not self._delivered:
            self._delivered = not failure
            if failure:
                log.warning("heartbeat.failed", detail=failure)
            else:
                log.info("heartbeat.delivered")


class HeartbeatProbe:
    """Checks that the heartbeat's address answers, without sending a heartbeat."""

    name = "heartbeat"

    def __init__(self, url: str) -> None:
        self._url = url

    async def probe(self) -> None:
        """Find the server and shake hands. Raises NotSent."""
        fix = _("Check heartbeat_url in [alerts], and the internet connection.")
        await reach(self._url, timeout_s=_TIMEOUT_S, fix=fix)
