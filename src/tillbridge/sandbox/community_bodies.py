"""The request bodies of the community endpoints (specification, "Community (hub) endpoints").

Opening hours are in `hours`.
"""

from tillbridge.sandbox.schema import (
    BodyError,
    Json,
    array,
    boolean,
    instant,
    one_of,
    record,
    text,
    url,
)

COMMUNITY_EVENTS = ("order.created", "order.status_changed")

_patch = record({"available": boolean(), "snoozed_until": instant()})


def item_patch(value: Json) -> None:
    """On, off, or off until an instant; on and snoozed contradict each other."""
    _patch(value)
    if not value:
        raise BodyError("must say available or snoozed_until")
    if value.get("available") is True and "snoozed_until" in value:
        raise BodyError("means nothing beside available true, which clears any snooze").under(
            "snoozed_until"
        )


_subscription_fields = {
    "name": text(at_most=200),
    "url": url(),
    "events": array(one_of((*COMMUNITY_EVENTS, "*")), at_least=1),
    "is_active": boolean(),
}

SUBSCRIBE = record(_subscription_fields, required=("name", "url"))
SUBSCRIPTION_UPDATE = record(_subscription_fields)
