"""Alerts by a webhook: everything as JSON with a signature, or the text that chats understand."""

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import aiohttp

from tillbridge.alerts.message import Message
from tillbridge.alerts.reaching import reach
from tillbridge.alerts.ways import NotTold
from tillbridge.config import WebhookSettings
from tillbridge.core.i18n import _
from tillbridge.core.trust import system_trust

SIGNATURE = "X-Tillbridge-Signature"
ALERT_ID = "X-Tillbridge-Alert-Id"
_Secret = Callable[[], str]


class WebhookWay:
    """Posts to one address; the address and the secret are read when they are needed."""

    name = "webhook"

    def __init__(self, settings: WebhookSettings, url: _Secret, secret: _Secret | None) -> None:
        self._settings = settings
        self._url = url
        self._secret = secret

    async def send(self, message: Message) -> None:
        """Post the message; done with any 2xx. Raises NotTold."""
        body = json.dumps(body_of(message, self._settings.format), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", ALERT_ID: message.id}
        if self._secret is not None:
            key = self._secret().encode()
            headers[SIGNATURE] = hmac.new(key, body, hashlib.sha256).hexdigest()
        url = self._url()
        tls = system_trust() if url.startswith("https:") else True
        # What the address is stays untold in errors: of a chat's webhook it is the secret.
        try:
            async with (
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=self._settings.timeout_s)
                ) as http,
                http.post(
                    url, data=body, headers=headers, ssl=tls, allow_redirects=False
                ) as answer,
            ):
                status = answer.status
        except TimeoutError as failure:
            raise NotTold(
                _("The webhook did not answer within {n} seconds.").format(
                    n=f"{self._settings.timeout_s:g}"
                ),
                fix=_("Check url in [alerts.webhook], and the internet connection."),
            ) from failure
        except aiohttp.InvalidURL as failure:
            raise NotTold(
                _("The webhook's address is none."),
                fix=_("Check url in [alerts.webhook]: it begins with https:// or http://."),
            ) from failure
        except (aiohttp.ClientError, OSError) as failure:
            raise NotTold(
                _("The webhook cannot be reached ({kind}).").format(kind=type(failure).__name__),
                fix=_("Check url in [alerts.webhook], and the internet connection."),
            ) from failure
        if not 200 <= status < 300:
            raise NotTold(
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
