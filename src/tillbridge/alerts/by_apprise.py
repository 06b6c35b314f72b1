"""Alerts through apprise, for all that is neither e-mail nor webhook. An extra."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tillbridge.alerts.message import Message
from tillbridge.alerts.ways import NotTold
from tillbridge.config import AppriseSettings
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from apprise import Apprise

_MISSING = _("apprise is not installed, which [alerts.apprise] needs.")
_INSTALL = _("Install it beside the bridge: pip install 'tillbridge[apprise]'")


class AppriseWay:
    """Sends to all addresses; they are read when they are needed, and never shown."""

    name = "apprise"

    def __init__(self, settings: AppriseSettings, urls: Sequence[Callable[[], str]]) -> None:
        self._settings = settings
        self._urls = urls

    async def send(self, message: Message) -> None:
        """Send to all of them. Raises NotTold where one fails, ConfigError without apprise."""
        sender = self._sender()
        body = "\n".join(message.lines)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                told = await sender.async_notify(body=body, title=message.subject)
        except TimeoutError as failure:
            raise NotTold(
                _("apprise did not finish within {n} seconds.").format(
                    n=f"{self._settings.timeout_s:g}"
                ),
                fix=_("Check the internet connection, and the addresses in [alerts.apprise]."),
            ) from failure
        except Exception as failure:
            raise NotTold(
                _("apprise failed: {kind}").format(kind=type(failure).__name__),
                fix=_("Bring it up to date: pip install --upgrade apprise"),
            ) from failure
        if not told:
            raise NotTold(
                _("apprise could not tell every address."),
                fix=_("Check the addresses in [alerts.apprise] with: tillbridge alerts test"),
            )

    async def probe(self) -> None:
        """See whether apprise is there and knows every address; it tells no more without telling.

        Raises NotTold, ConfigError.
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
                raise NotTold(
                    _("Address {n} of [alerts.apprise] is not one that apprise knows.").format(
                        n=place + 1
                    ),
                    fix=_("Compare it with the list of services in apprise's manual."),
                )
        return sender
