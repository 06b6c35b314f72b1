"""Whether the service answers, the merchant's consent holds and the store is integrated."""

import asyncio
import json
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from tillbridge.core.errors import ConsentLost, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.network import system_trust
from tillbridge.core.problems import Found
from tillbridge.core.spans import days_left
from tillbridge.diagnostics.apart import apart
from tillbridge.diagnostics.line import Exchange, Resolve, Trust, no_trust, resolve
from tillbridge.diagnostics.line import exchange as fetch
from tillbridge.diagnostics.result import Finding, Level, failed, of_problem, ok, skipped, warning
from tillbridge.diagnostics.subject import StoreSubject, Subject
from tillbridge.service.answers import NOT_INTEGRATED, problem_of
from tillbridge.service.types import Integration

_PATH = "/pos/stores"
_SKEW_S = 30.0
CLOCK_WRONG = "clock.wrong"


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking the service: does it answer, and how far is our clock off (seconds)?

    `skew_s` is positive where ours is behind, None where nobody can tell.
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
    seen = await apart(lambda: fetch(url, names=names, trust=trust))
    verdict = answer_verdict(seen)
    timed = await _timed(seen, url, names)
    return Asked(verdict.level is Level.OK, verdict.fix, _skew_of(timed))


async def asked(subject: Subject) -> Exchange:
    """Return what came of asking the service; asked once for all checks."""
    if "service" not in subject.asked:
        url = f"{subject.settings.service.base_url}{_PATH}"
        subject.asked["service"] = asyncio.ensure_future(apart(lambda: subject.fetch(url)))
    return await asyncio.shield(subject.asked["service"])


async def check_service(subject: Subject) -> Finding:
    """Look whether the service answers."""
    return answer_verdict(await asked(subject))


async def check_clock(subject: Subject) -> Finding:
    """Compare the clocks."""
    url = f"{subject.settings.service.base_url}{_PATH}"
    return clock_verdict(await _timed(await asked(subject), url, subject.names))


def answer_verdict(seen: Exchange) -> Finding:
    """Return what an answer to a call without a token means."""
    details = {"status": seen.status, "rtt_ms": round(seen.rtt_s * 1000), "trouble": seen.trouble}
    if seen.trouble:
        return failed(
            _("The ordering service cannot be reached ({detail}).").format(
                detail=seen.detail or seen.trouble
            ),
            _("Check the internet connection, the firewall, and base_url in [service]."),
            **details,
        )
    if seen.status >= 500:
        return failed(
            _("The ordering service answers, but is out of order ({status}).").format(
                status=seen.status
            ),
            _("Wait; if it lasts, ask the service's support. Orders that arrive are kept."),
            **details,
        )
    if 300 <= seen.status < 400 or not _is_envelope(seen.body):
        return failed(
            _(
                "Something that is not the ordering service answers under base_url ({status})."
            ).format(status=seen.status),
            _(
                "Check base_url; look whether this network wants a sign-in in the browser first "
                "(captive portal), or a proxy stands between."
            ),
            **details,
        )
    return ok(
        _("The ordering service answers within {ms} ms.").format(ms=details["rtt_ms"]), **details
    )


def clock_verdict(seen: Exchange) -> Finding:
    """Return how far this machine's clock is off, by the Date of an answer."""
    off_s = _skew_of(seen)
    if off_s is None:
        if seen.trouble:
            return skipped(_("The service cannot be asked for its time."))
        return skipped(_("The service does not tell its time."))
    details = {"skew_s": round(off_s, 1), "rtt_ms": round(seen.rtt_s * 1000)}
    wrong = clock_problems(off_s)
    if not wrong:
        return ok(_("This machine's clock agrees with the service's."), **details)
    return of_problem(wrong[0], **details)


def clock_problems(off_s: float) -> list[Found]:
    """Return the problem of a clock that is `off_s` seconds behind (ahead: less than 0)."""
    if abs(off_s) <= _SKEW_S:
        return []
    if off_s > 0:
        off = _("{span} behind").format(span=_span(off_s))
        effect = _(
            "Times on the page are wrong, tokens are used after their end, and certificates may "
            "look as if they did not count yet."
        )
    else:
        off = _("{span} ahead of").format(span=_span(-off_s))
        effect = _(
            "Times on the page are wrong, and the consent, tokens and certificates may look "
            "expired."
        )
    return [Found(CLOCK_WRONG, detail={"off": off, "effect": effect})]


async def _timed(seen: Exchange, url: str, names: Resolve) -> Exchange:
    """Return an answer that tells the time."""
    if seen.trouble != "tls":
        return seen
    # A wrong clock is why certificates look wrong: its time is asked without trust, since nothing
    # but the time is taken from the answer.
    return await apart(lambda: fetch(url, names=names, trust=no_trust))


def _skew_of(seen: Exchange) -> float | None:
    try:
        told_ms = round(parsedate_to_datetime(seen.headers.get("date", "")).timestamp() * 1000)
    except (TypeError, ValueError):
        return None
    return skew_s(told_ms, seen.sent_ms, seen.received_ms)


def skew_s(told_ms: int, sent_ms: int, received_ms: int) -> float:
    """Return how far ours is surely off, in seconds; positive where ours is behind.

    The service's time was taken somewhere between sending and receiving, and is told in whole
    seconds: within that there is no difference.
    """
    earliest, latest = told_ms - received_ms, told_ms + 1000 - sent_ms
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


_DAY_MS = 86_400_000


async def check_consent(subject: Subject, store: StoreSubject) -> Finding:
    """Ask the service, with the store's token, for what it may always read."""
    tokens = await store.tokens.tokens()
    if tokens is None:
        return of_problem(Found("consent.missing"), store.name)
    failure = None
    try:
        await store.client.stores()
    except ServiceError as refusal:
        failure = refusal
    left_ms = tokens.consent_expires_at_ms - subject.clock.now_ms()
    warn_days = subject.settings.service.consent_warn_days
    return consent_verdict(store.name, failure, left_ms / _DAY_MS, warn_days)


def consent_verdict(
    store: str, failure: ServiceError | None, days: float, warn_days: float
) -> Finding:
    """Return what is known of the consent; `days` are left by the calendar."""
    again = _("Ask the merchant to consent again: tillbridge connect {store}").format(store=store)
    details = {"days_left": round(days, 1)}
    if isinstance(failure, ConsentLost):
        lost = problem_of(failure) or "consent.expired"
        return of_problem(Found(lost), store, **details, code=failure.code)
    if failure is not None and failure.status in {401, 403}:
        return failed(
            _("The service refuses this bridge's token: {text}").format(text=failure.text),
            _("Check that base_url and client_id are of one environment. Else: {again}").format(
                again=again
            ),
            **details,
            code=failure.code,
        )
    if failure is not None:
        return failed(
            _("The token could not be tried: {text}").format(text=failure.text),
            failure.fix or _("Check the internet connection."),
            **details,
            code=failure.code,
        )
    if days < warn_days:  # also once none is left: the service takes the token all the same
        left = {"left": days_left(round(days * _DAY_MS))}
        return of_problem(Found("consent.ending", detail=left), store, **details)
    return ok(
        _("The service takes the token; the consent lasts {days} more days.").format(
            days=f"{days:.1f}"
        ),
        **details,
    )


async def check_integration(subject: Subject, store: StoreSubject) -> Finding:
    """Read the integration, and compare it with the configuration."""
    fix = _("Run: tillbridge connect {store}").format(store=store.name)
    if store.store_id is None:
        return failed(_("The store is not connected to the service yet."), fix)
    try:
        now = await store.client.integration(store.store_id)
    except ConsentLost:
        return skipped(_("Without the merchant's consent the integration cannot be read."), fix)
    except ServiceError as failure:
        if failure.code == NOT_INTEGRATED:
            return failed(
                _("The service has no active integration of this store: no orders arrive."), fix
            )
        return failed(
            _("The integration could not be read: {text}").format(text=failure.text),
            failure.fix or _("Look at the other checks first."),
            code=failure.code,
        )
    url = f"{subject.settings.receiver.public_url}/webhooks/{store.name}"
    return integration_verdict(
        store.name,
        now,
        webhook_url=url,
        direction=store.settings.menu_sync_direction,
        location_id=store.settings.location_id,
    )


def integration_verdict(
    store: str, now: Integration, *, webhook_url: str, direction: str, location_id: str
) -> Finding:
    """Return what the integration means, given what the configuration wants."""
    details = {
        "integration_id": now.integration_id,
        "status": now.status,
        "webhook_url": now.webhook_url,
        "menu_sync_direction": now.menu_sync_direction,
        "external_store_id": now.external_store_id,
    }
    fix = _("Run: tillbridge connect {store}").format(store=store)
    if now.status not in {None, "active"}:
        return failed(
            _("The integration is {status}: no orders arrive.").format(status=now.status),
            fix,
            **details,
        )
    if now.webhook_url is not None and now.webhook_url.rstrip("/") != webhook_url:
        return failed(
            _("The service delivers to {theirs}, but this bridge receives at {ours}.").format(
                theirs=now.webhook_url, ours=webhook_url
            ),
            _("If public_url is right, run: tillbridge connect {store}").format(store=store),
            **details,
        )
    if now.external_store_id not in {None, location_id}:
        return failed(
            _("The store is integrated as location {theirs}; location_id says {ours}.").format(
                theirs=now.external_store_id, ours=location_id
            ),
            _("Correct location_id, or run: tillbridge connect {store} --reintegrate").format(
                store=store
            ),
            **details,
        )
    if now.menu_sync_direction not in {None, direction}:
        return warning(
            _("Menus go {theirs} at the service; menu_sync_direction says {ours}.").format(
                theirs=now.menu_sync_direction, ours=direction
            ),
            fix,
            **details,
        )
    return ok(_("The store is integrated, and deliveries go to this bridge."), **details)
