"""Whether the ordering service answers, and this machine's clock agrees with its own."""

import asyncio
import json
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from tillbridge.core.i18n import _
from tillbridge.core.network import system_trust
from tillbridge.core.problems import Found
from tillbridge.core.worker import in_thread
from tillbridge.diagnostics.check import (
    Finding,
    Level,
    Subject,
    detailed,
    failed,
    of_problem,
    ok,
    skipped,
)
from tillbridge.diagnostics.network import Exchange, Resolve, Trust, no_trust, resolve
from tillbridge.diagnostics.network import exchange as fetch

_PATH = "/pos/stores"
_SKEW_S = 30.0
CLOCK_WRONG = "clock.wrong"


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking the service: does it answer, and how far is our clock off (seconds)?

    `skew_s` is positive if ours is behind, None if that is unknown.
    """

    answers: bool
    fix: str = ""
    skew_s: float | None = None

    def clock_problems(self) -> list[Found]:
        """Return the problem of a clock that is wrong."""
        return [] if self.skew_s is None else clock_problems(self.skew_s)


async def ask(base_url: str, names: Resolve = resolve, trust: Trust = system_trust) -> Asked:
    """Ask the service once, without a credential."""
    url = f"{base_url}{_PATH}"
    seen = await in_thread(lambda: fetch(url, names=names, trust=trust))
    verdict = answer_verdict(seen)
    timed = await _timed(seen, url, names)
    return Asked(verdict.level is Level.OK, verdict.fix, _skew_of(timed))


async def asked(subject: Subject) -> Exchange:
    """Return what came of asking the service; asked once for all checks."""
    if "service" not in subject.asked:
        url = f"{subject.loaded.settings.service.base_url}{_PATH}"
        subject.asked["service"] = asyncio.ensure_future(in_thread(lambda: subject.fetch(url)))
    return await asyncio.shield(subject.asked["service"])


async def check_service(subject: Subject) -> Finding:
    """Check whether the service answers."""
    return answer_verdict(await asked(subject))


async def check_clock(subject: Subject) -> Finding:
    """Compare the clocks."""
    url = f"{subject.loaded.settings.service.base_url}{_PATH}"
    return clock_verdict(await _timed(await asked(subject), url, subject.names))


def answer_verdict(seen: Exchange) -> Finding:
    """Return what an answer to a call without a token means."""
    rtt_ms = round(seen.rtt_s * 1000)
    return detailed(_answer(seen), status=seen.status, rtt_ms=rtt_ms, trouble=seen.trouble)


def _answer(seen: Exchange) -> Finding:
    if seen.trouble:
        text = _("The ordering service cannot be reached ({detail}).")
        return failed(
            text.format(detail=seen.detail or seen.trouble),
            _("Check the internet connection, the firewall, and base_url in [service]."),
        )
    if seen.status >= 500:
        text = _("The ordering service has a failure of its own ({status}).")
        return failed(
            text.format(status=seen.status),
            _("Wait. If it lasts, ask the ordering service's support."),
        )
    if 300 <= seen.status < 400 or not _is_envelope(seen.body):
        text = _("Something other than the ordering service answers at base_url ({status}).")
        return failed(
            text.format(status=seen.status),
            _(
                "Check base_url. Check also whether this network asks for a sign-in in the "
                "browser (captive portal) or uses a proxy."
            ),
        )
    ms = round(seen.rtt_s * 1000)
    return ok(_("The ordering service answers within {ms} ms.").format(ms=ms))


def clock_verdict(seen: Exchange) -> Finding:
    """Return how far this machine's clock is off, by the Date of an answer."""
    off_s = _skew_of(seen)
    if off_s is None:
        if seen.trouble:
            return skipped(_("Not checked: the ordering service cannot be asked for its time."))
        return skipped(_("Not checked: the ordering service does not send its time."))
    details = {"skew_s": round(off_s, 1), "rtt_ms": round(seen.rtt_s * 1000)}
    wrong = clock_problems(off_s)
    if not wrong:
        return ok(_("This machine's clock is right."), **details)
    return of_problem(wrong[0], **details)


def clock_problems(off_s: float) -> list[Found]:
    """Return the problem of a clock that is `off_s` seconds behind (ahead: less than 0)."""
    if abs(off_s) <= _SKEW_S:
        return []
    if off_s > 0:
        off = _("{span} behind").format(span=_span(off_s))
        effect = _(
            "Times on the page are wrong, and valid certificates may look as if they were from "
            "the future."
        )
    else:
        off = _("{span} ahead of").format(span=_span(-off_s))
        effect = _(
            "Times on the page are wrong, and the sign-in and certificates may look expired."
        )
    return [Found(CLOCK_WRONG, detail={"off": off, "effect": effect})]


async def _timed(seen: Exchange, url: str, names: Resolve) -> Exchange:
    """Return an answer with a date."""
    if seen.trouble != "tls":
        return seen
    # A wrong clock is why certificates look wrong: its time is asked without trust, since nothing
    # but the time is taken from the answer.
    return await in_thread(lambda: fetch(url, names=names, trust=no_trust))


def _skew_of(seen: Exchange) -> float | None:
    try:
        date_ms = round(parsedate_to_datetime(seen.headers.get("date", "")).timestamp() * 1000)
    except (TypeError, ValueError):
        return None
    return skew_s(date_ms, seen.sent_ms, seen.received_ms)


def skew_s(date_ms: int, sent_ms: int, received_ms: int) -> float:
    """Return how far ours is surely off, in seconds; positive where ours is behind.

    The service's time was taken somewhere between sending and receiving, and is told in whole
    seconds: within that there is no difference.
    """
    earliest, latest = date_ms - received_ms, date_ms + 1000 - sent_ms
    if earliest <= 0 <= latest:
        return 0.0
    return (earliest if earliest > 0 else latest) / 1000


def _is_envelope(body: str) -> bool:
    try:
        document = json.loads(body)
    except ValueError:
        return False
    error = document.get("error") if isinstance(document, dict) else None
    return isinstance(document, list) or (isinstance(error, dict) and "code" in error)


def _span(seconds: float) -> str:
    if seconds < 120:
        return _("{n} seconds").format(n=round(seconds))
    if seconds < 7200:
        return _("{n} minutes").format(n=round(seconds / 60))
    if seconds < 2 * 86_400:
        return _("{n} hours").format(n=round(seconds / 3600))
    return _("{n} days").format(n=round(seconds / 86_400))
