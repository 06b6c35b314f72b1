"""Where a printer is: the option `printer`, taken apart."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tillbridge.adapter.texts import _

_SCHEMES = _("tcp, usb, file, epos, epos+tls or cloudprnt")


@dataclass(frozen=True, slots=True)
class TcpPlace:
    """A printer on the network that takes ESC/POS."""

    host: str
    port: int = 9100


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """A printer behind a device file, which answers (`usb:`), or a file that does not."""

    path: Path
    answers: bool


@dataclass(frozen=True, slots=True)
class EposPlace:
    """An Epson printer's ePOS-Print service."""

    url: str
    device: str = "local_printer"


@dataclass(frozen=True, slots=True)
class CloudPlace:
    """Where the bridge listens for a Star printer that polls."""

    host: str
    port: int


Place = TcpPlace | DevicePlace | EposPlace | CloudPlace


def place_of(text: str) -> Place:
    """Return where the printer is. Raises ValueError, in words."""
    scheme, colon, rest = text.partition(":")
    if not colon:
        raise ValueError(
            _("must begin with {schemes}, for example tcp://192.168.1.50").format(schemes=_SCHEMES)
        )
    match scheme.lower():
        case "tcp":
            host, port = _host_and_port(text, 9100)
            return TcpPlace(host, port)
        case "usb":
            return DevicePlace(_path(rest), answers=True)
        case "file":
            return DevicePlace(_path(rest), answers=False)
        case "epos" | "epos+tls" as kind:
            secure = kind == "epos+tls"
            host, port = _host_and_port(text, 443 if secure else 80)
            shown = f"[{host}]" if ":" in host else host
            device = urlsplit(text).path.strip("/") or "local_printer"
            return EposPlace(f"http{'s' if secure else ''}://{shown}:{port}", device)
        case "cloudprnt":
            host, port = _host_and_port(text, None)
            return CloudPlace(host, port)
        case _:
            raise ValueError(
                _("{scheme}: is nothing a printer is reached by; try {schemes}").format(
                    scheme=scheme, schemes=_SCHEMES
                )
            )


def _host_and_port(text: str, default: int | None) -> tuple[str, int]:
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        raise ValueError(_("the port must be a number up to 65535")) from None
    port = default if port is None else port
    if not parts.hostname:
        raise ValueError(_("names no host, for example tcp://192.168.1.50"))
    if port is None:
        raise ValueError(_("names no port to listen on, for example cloudprnt://0.0.0.0:8090"))
    return parts.hostname, port


def _path(rest: str) -> Path:
    path = rest.removeprefix("//")
    if not path:
        raise ValueError(_("names no file, for example usb:/dev/usb/lp0"))
    return Path(path)
