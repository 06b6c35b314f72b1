"""Reading what the service says of communities.

Specification: Community (hub) order; Community catalogue, hours, webhook subscription.
"Bodies of the community responses: not shown", so that ids are all that is insisted on.
"""

from typing import Any

from tillbridge.core.i18n import _
from tillbridge.model.community import (
    Catalogue,
    ChildOrder,
    DeliveryAttempt,
    ItemDetail,
    NewSubscription,
    ParentOrder,
    Record,
    RecordKind,
    Subscription,
)
from tillbridge.service.fields import Fields, objects, unreadable

_LISTS: tuple[tuple[str, RecordKind], ...] = (
    ("stores", "store"),
    ("categories", "category"),
    ("items", "item"),
)


def read_catalogue(body: object, operation: str) -> Catalogue:
    """Return the records of a catalogue; those without an id are left out.

    Raises Refused `answer.unreadable` where there is no list of anything.
    """
    whole = Fields(body, operation)
    listed = {kind: body.get(name) if isinstance(body, dict) else None for name, kind in _LISTS}
    if not any(isinstance(each, list) for each in listed.values()):
        raise unreadable(operation, _("it has no {field}").format(field="items"))
    records = []
    for kind, found in listed.items():
        for each in found if isinstance(found, list) else ():
            record = _record(each, kind, operation)
            if record is not None:
                records.append(record)
    return Catalogue(tuple(records), whole.text("as_of"))


def read_item(body: object, operation: str) -> ItemDetail:
    """Return the detail of an item."""
    fields = Fields(body, operation)
    record = _record(body, "item", operation)
    if record is None:
        raise unreadable(operation, _("it has no {field}").format(field="item_id"))
    return ItemDetail(
        record,
        fields.text("currency"),
        fields.flag("merchant_available"),
        fields.flag("community_available"),
    )


def read_parent(body: object, operation: str) -> ParentOrder:
    """Return a community order. Specification: Community (hub) order."""
    fields = Fields(body, operation)
    return ParentOrder(
        order_id=fields.need_text("order_id"),
        status=fields.need_text("status"),
        order_number=fields.text("order_number") or "",
        community_id=fields.text("community_id") or "",
        updated_at=fields.instant("updated_at"),
        children=tuple(
            ChildOrder(
                order_id=child.need_text("order_id"),
                store_id=child.text("store_id") or "",
                store_name=child.text("store_name") or "",
                status=child.text("status") or "",
                subtotal=child.count("subtotal"),
                line_ids=child.texts("line_ids"),
            )
            for child in fields.children("child_orders")
        ),
        body=body if isinstance(body, dict) else {},
    )


def read_subscription(body: object, operation: str) -> Subscription:
    """Return a subscription."""
    fields = Fields(body, operation)
    told = body.get("events") if isinstance(body, dict) else None
    return Subscription(
        webhook_id=_id(fields, "webhook_id") or fields.need_text("webhook_id"),
        name=fields.text("name"),
        url=fields.text("url"),
        events=fields.texts("events") if isinstance(told, list) else None,
        is_active=fields.flag("is_active"),
    )


def read_new_subscription(body: object, operation: str, *, secret_field: str) -> NewSubscription:
    """Return a new subscription with its secret; without one it is of no use."""
    return NewSubscription(
        read_subscription(body, operation), Fields(body, operation).need_text(secret_field)
    )


def read_attempts(body: object, operation: str) -> list[DeliveryAttempt]:
    """Return the attempts of a subscription: a list, or one in the field `deliveries`."""
    listed = body.get("deliveries") if isinstance(body, dict) else body
    return [
        DeliveryAttempt(
            event_type=each.text("event_type") or "",
            response_status=each.count("response_status"),
            response_body=each.text("response_body") or "",
            delivery_id=each.text("delivery_id") or "",
            attempted_at=each.instant("attempted_at"),
            error=each.text("error") or "",
        )
        for each in objects(listed, operation)
    ]


def _record(body: Any, kind: RecordKind, operation: str) -> Record | None:  # noqa: ANN401 -- any JSON value
    if not isinstance(body, dict):
        return None
    fields = Fields(body, operation)
    record_id = _id(fields, f"{kind}_id")
    if record_id is None:
        return None
    return Record(
        kind,
        record_id,
        record_id if kind == "store" else fields.text("store_id") or "",
        fields.text("name") or "",
        body,
        removed=fields.flag("removed") is True,
    )


def _id(fields: Fields, name: str) -> str | None:
    return fields.text(name) or fields.text("id") or None
