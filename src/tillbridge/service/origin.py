"""URLs under the service's root, and never anywhere else. Pure.

A token is only ever sent to the scheme, host and port of base_url; `poll_url` comes from an answer
and is not trusted (specification: Menus and items, "poll_url is a path").
"""

import re
from urllib.parse import SplitResult, quote, unquote, urlsplit

from tillbridge.core.errors import Refused
from tillbridge.core.i18n import _

LEFT_ORIGIN = "answer.foreign_url"
_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!-\[\]-~]+")  # visible ASCII, and no backslash
_LONGEST = 2048


class Origin:
    """The service's root, such as `https://api.example.com/v2`."""

    def __init__(self, base_url: str) -> None:
        self._base = urlsplit(base_url.rstrip("/"))
        self._root = f"{self._base.scheme}://{self._base.netloc}"

    @property
    def uses_tls(self) -> bool:
        """Whether calls are encrypted."""
        return self._base.scheme == "https"

    def url(self, *segments: str) -> str:
        """Return the URL of a path below the root; each segment is quoted.

        Raises Refused for a segment that no URL can hold as a name ("", "." and "..").
        """
        for segment in segments:
            if segment in {"", ".", ".."}:
                raise Refused(
                    _("{name!r} cannot be used as an id in a call to the ordering service.").format(
                        name=segment
                    ),
                    code="request.validation",
                )
        path = "/".join(quote(segment, safe="") for segment in segments)
        return f"{self._root}{self._base.path}/{path}"

    def poll_url(self, told: str) -> str:
        """Return the URL for a `poll_url`: a path below the root, with or without its prefix.

        An absolute URL is taken where its origin is the service's own. Raises Refused (code
        `answer.foreign_url`) for everything else: it might carry the token to a stranger.
        """
        if len(told) > _LONGEST or not _PLAIN.fullmatch(told):
            raise _foreign()
        try:
            parts = urlsplit(told)
            own = not (parts.scheme or parts.netloc) or self._is_own(parts)
        except ValueError:
            raise _foreign() from None
        if not own or not parts.path.startswith("/") or parts.path.startswith("//"):
            raise _foreign()
        path = parts.path
        if not path.startswith(f"{self._base.path}/pos/"):
            path = self._base.path + path
        if not path.startswith(f"{self._base.path}/pos/") or _climbs(path):
            raise _foreign()
        return f"{self._root}{path}" + (f"?{parts.query}" if parts.query else "")

    def owns(self, url: str) -> bool:
        """Whether a URL is of the service's origin."""
        try:
            return self._is_own(urlsplit(url))
        except ValueError:
            return False

    def _is_own(self, parts: SplitResult) -> bool:
        return (
            parts.username is None
            and parts.password is None
            and parts.scheme == self._base.scheme
            and (parts.hostname or "") == (self._base.hostname or "")
            and _port(parts) == _port(self._base)
        )


def _port(parts: SplitResult) -> int | None:
    return parts.port or _PORTS.get(parts.scheme)


def _climbs(path: str) -> bool:
    """Whether a path holds dot segments or hidden separators, however often they are quoted."""
    for _round in range(4):
        if "\\" in path or "//" in path or {".", ".."} & set(path.split("/")):
            return True
        plain = unquote(path)
        if plain == path:
            return False
        path = plain
    return True


def _foreign() -> Refused:
    return Refused(
        _("The ordering service named an address that is not its own; it was not called."),
        code=LEFT_ORIGIN,
        operation="menus.job",
        fix=_("Tell the ordering service's support. The next push goes on as usual."),
    )
