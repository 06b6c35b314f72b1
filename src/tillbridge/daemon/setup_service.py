"""The first two steps: the ordering service answers, and knows this app."""

from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from tillbridge.config import is_loopback
from tillbridge.config.values import HttpUrl
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError, Refused
from tillbridge.core.i18n import _
from tillbridge.diagnostics.apart import apart
from tillbridge.diagnostics.checks.service import answer_verdict
from tillbridge.diagnostics.line import exchange
from tillbridge.diagnostics.result import Level
from tillbridge.service.answers import BAD_CLIENT
from tillbridge.service.link import App, ServiceLink
from tillbridge.setup.steps import Finding

PRACTICE = "http://127.0.0.1:9000/v2"  # where `tillbridge sandbox` listens


def checked_url(text: str) -> str:
    """Return a base URL as it is written in the file. Raises ConfigError."""
    try:
        url = TypeAdapter(HttpUrl).validate_python(text.strip())
    except ValidationError as failure:
        words = failure.errors(include_url=False, include_input=False)[0]["msg"]
        raise ConfigError(
            _("That address {words}.").format(words=words.removeprefix("Value error, ")),
            fix=_("It is in the service's console, and ends in /v2."),
        ) from None
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ConfigError(
            _("That is plain http to another machine: tokens could be read on the way."),
            fix=_("Use https://."),
        )
    return url


def is_practice(base_url: str) -> bool:
    """Whether a service is on this very machine, as the sandbox is."""
    return is_loopback(urlsplit(base_url).hostname or "")


async def reached(base_url: str) -> Finding:
    """Ask the service without any credential, and return what came of it."""
    found = answer_verdict(await apart(lambda: exchange(f"{base_url}/pos/stores")))
    fix = found.fix
    if found.level is not Level.OK and is_practice(base_url):
        fix = _("Start it: tillbridge sandbox. {fix}").format(fix=fix)
    return Finding(done=found.level is Level.OK, text=found.text, fix=fix)


async def known(app: App, base_url: str, audience: str, clock: Clock) -> None:
    """Let the service look at the app's id and secret. Raises ServiceError.

    A token for the app itself is asked for. Where the service gives none for that audience it
    has recognised the app all the same; only its word that it does not know the app counts.
    """
    async with ServiceLink(base_url, app, clock=clock) as link:
        try:
            await link.oauth.mint(audience)
        except Refused as failure:
            if failure.code == BAD_CLIENT:
                raise
