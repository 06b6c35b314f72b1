"""Whether a server could be reached: its name, a connection, and TLS where there is any."""

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

from tillbridge.alerts.ways import NotTold
from tillbridge.core.i18n import _
from tillbridge.core.trust import system_trust


async def reach(url: str, *, timeout_s: float, fix: str) -> None:
    """Connect to the address's server and go again; nothing is asked of it. Raises NotTold.

    Texts name the host only: the rest of the address may be a secret.
    """
    try:
        parts = urlsplit(url)
        tls = parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or (443 if tls else 80)
    except ValueError:
        raise NotTold(_("The address is none."), fix=fix) from None
    try:
        async with asyncio.timeout(timeout_s):
            _reader, writer = await asyncio.open_connection(
                host, port, ssl=system_trust() if tls else None
            )
    except TimeoutError:
        raise NotTold(_("{host} does not answer.").format(host=host), fix=fix) from None
    except ssl.SSLError as failure:
        raise NotTold(
            _("No encrypted connection to {host} was made: {detail}").format(
                host=host, detail=failure.reason or type(failure).__name__
            ),
            fix=fix,
        ) from failure
    except (OSError, ValueError) as failure:  # ValueError: a host that cannot be a name
        detail = (failure.strerror if isinstance(failure, OSError) else None) or ""
        raise NotTold(
            _("{host} cannot be reached: {detail}").format(
                host=host, detail=detail or type(failure).__name__
            ),
            fix=fix,
        ) from failure
    writer.close()
    with contextlib.suppress(OSError):  # who hangs up first does not matter
        await writer.wait_closed()
