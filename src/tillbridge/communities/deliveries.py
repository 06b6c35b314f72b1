"""What the service's list of deliveries says of this receiver. Pure."""

from collections.abc import Sequence

from tillbridge.core.i18n import _
from tillbridge.model.community import DeliveryAttempt

_SHOWN = 100


def newest(attempts: Sequence[DeliveryAttempt]) -> DeliveryAttempt | None:
    """Return the latest attempt; where no times are told, the first of the list."""
    if not attempts:
        return None
    if any(each.attempted_at is None for each in attempts):
        return attempts[0]
    return max(attempts, key=lambda each: each.attempted_at or 0)


def told(attempt: DeliveryAttempt) -> str:
    """Return what came of an attempt, in words."""
    if attempt.response_status is None:
        why = attempt.error or _("no answer")
        return _("{event}: {why}").format(event=attempt.event_type, why=why)
    answer = attempt.response_body.strip()[:_SHOWN]
    text = _("{event}: answered {status}").format(
        event=attempt.event_type, status=attempt.response_status
    )
    return f"{text} ({answer})" if answer else text


def remedy(attempt: DeliveryAttempt, name: str, url: str) -> str:
    """Return what to do about a failing attempt."""
    status = attempt.response_status
    if status is None or status in {502, 503, 504}:
        return _(
            "See that the internet reaches {url}: the tunnel or router, and public_url."
        ).format(url=url)
    if status == 401:
        return _(
            "The signing secret is not this one: tillbridge community webhook remake {name}"
        ).format(name=name)
    return _(
        "Something else than this bridge may answer at {url}: check public_url, and what stands "
        "before the bridge. Then: tillbridge community webhook test {name}"
    ).format(url=url, name=name)
