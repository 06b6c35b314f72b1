"""Whether this machine can listen where the configuration wants it to."""

import errno
import socket

from tillbridge.config import host_and_port
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

_NOT_OURS = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def check_address(key: str, listen: str) -> None:
    """Raise ConfigError where `listen` (address:port) is not of this machine; blocks for a name.

    Whether the port is free is not looked at: the bridge itself may have it.
    """
    host, _port = host_and_port(listen)
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise _none(key, listen, _("{host} is no name that this machine knows")) from None
    family, kind, protocol, _name, address = found[0]
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError as failure:
        if failure.errno in _NOT_OURS:
            raise _none(key, listen, _("{host} is no address of this machine")) from None


def _none(key: str, listen: str, why: str) -> ConfigError:
    host, _port = host_and_port(listen)
    return ConfigError(
        f"{key}: {why.format(host=host)}.",
        fix=_(
            'Name an address of this machine: "127.0.0.1:PORT" for itself alone, '
            '"0.0.0.0:PORT" for every network it is in.'
        ),
    )
