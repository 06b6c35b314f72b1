"""What a way of telling people is; each way is a file of its own."""

from typing import Protocol

from tillbridge.alerts.message import Message
from tillbridge.core.errors import BridgeError


class NotTold(BridgeError):
    """A way could not tell: it is certain, or likely, that nobody has the message."""


class Way(Protocol):
    """A way of telling people."""

    @property
    def name(self) -> str:
        """Its name in the configuration: email, webhook, apprise."""
        ...

    async def send(self, message: Message) -> None:
        """Send the message. Raises NotTold, ConfigError (a secret that cannot be had)."""
        ...

    async def probe(self) -> None:
        """Find out whether it would work, telling nobody. Raises NotTold, ConfigError."""
        ...
