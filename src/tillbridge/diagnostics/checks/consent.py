"""A store's consent: is there one, does the service take its token, and how long does it last?"""

from tillbridge.core.errors import ConsentLost, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.problems import Found
from tillbridge.core.spans import days_left
from tillbridge.diagnostics.result import Finding, failed, of_problem, ok
from tillbridge.diagnostics.subject import StoreSubject, Subject
from tillbridge.service.diagnosis import problem_of

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
    return verdict(store.name, failure, left_ms / _DAY_MS, warn_days)


def verdict(store: str, failure: ServiceError | None, days: float, warn_days: float) -> Finding:
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
