"""Bodies of the control API: as strict as the service's own, so that a typo in a test says so."""

from tillbridge.sandbox.schema import (
    BodyError,
    Check,
    array,
    boolean,
    email,
    integer,
    number,
    one_of,
    record,
    text,
)


def _anything(_value: object) -> None:
    """Any JSON: what is odd on purpose is not checked."""


def _nullable(check: Check) -> Check:
    def either(value: object) -> None:
        if value is not None:
            check(value)

    return either


def _positive(value: object) -> None:
    number()(value)
    if isinstance(value, int | float) and value <= 0:
        raise BodyError(f"must be more than 0, not {value}")


_id = text(at_most=500)
_option = record({"external_id": _id, "quantity": integer(minimum=1)}, required=("external_id",))
_line_fields: dict[str, Check] = {
    "external_id": _nullable(_id),
    "variant_external_id": _nullable(_id),
    "quantity": integer(),
    "options": array(_option),
}
_line = record(
    {
        **_line_fields,
        "overrides": record(
            dict.fromkeys(
                (
                    "product_id",
                    "product_variant_id",
                    "product_name",
                    "unit_price",
                    "external_id",
                    "variant_external_id",
                ),
                _anything,
            )
        ),
    }
)

ORDER = record(
    {
        "store_id": _id,
        "items": array(_line),
        "order_type": text(),
        "tip": integer(minimum=0),
        "discount": integer(minimum=0),
        "special_instructions": text(empty=True),
        "customer_id": text(),
        "unchecked": boolean(),
        "overrides": record({}, other_fields=True),
        "wait": boolean(),
    },
    required=("store_id", "items"),
)
COMMUNITY_ORDER = record(
    {
        "items": array(record({**_line_fields, "store_id": _id, "item_id": _id})),
        "fulfillment_type": text(),
        "tip": integer(minimum=0),
        "discount": integer(minimum=0),
        "special_instructions": text(empty=True),
        "customer": record(dict.fromkeys(("customer_id", "name", "phone"), text(empty=True))),
        "wait": boolean(),
    },
    required=("items",),
)
CUSTOMER_CANCEL = record({"event_type": text()})
CLOCK = record({"speed": number(minimum=0), "jump_s": number(minimum=0)})
RATE = record({"limit": _nullable(integer(minimum=0)), "window_s": _positive}, required=("limit",))
KIND = record({"kind": one_of(("access", "refresh", "app"))})
REVOKE = record({"email": email(), "uninstall": boolean()})
MINT = record({"client_id": text(), "email": email()})
CONSENT = record({"auto": boolean()}, required=("auto",))
APP_SECRET = record({"client_secret": text()}, required=("client_secret",))
REDELIVER = record(
    {
        "delivery_id": text(),
        "order_id": text(),
        "mode": one_of(("same", "new_delivery_id", "new_event_id")),
        "wait": boolean(),
    }
)
_made_up: dict[str, Check] = {
    "event_type": text(),
    "data": _anything,
    "event_id": text(),
    "delivery_id": text(),
    "signature": one_of(("valid", "wrong", "none")),
    "secret": text(),
    "raw_body": text(empty=True),
    "headers": record({}, other_fields=True),
    "retry": boolean(),
    "wait": boolean(),
}
SEND = record(
    {**_made_up, "store_id": _id, "body_store_id": text(), "body_location_id": text()},
    required=("store_id", "event_type"),
)
COMMUNITY_SEND = record(
    {**_made_up, "webhook_id": text(), "body_community_id": text()}, required=("event_type",)
)
STORE = record(
    {"store_id": _id, "name": text(), "email": email(), "community_id": _id}, required=("name",)
)
MEMBER = record({"store_id": _id}, required=("store_id",))
ROTATE = record({"external_ids": array(_id)})
_tax = record(
    {
        "tax_id": text(),
        "name": text(),
        "components": array(
            record(
                {"agency": text(), "rate": number(minimum=0), "compound": boolean()},
                required=("agency", "rate", "compound"),
            )
        ),
    },
    required=("tax_id", "name", "components"),
)
_tax_config = {
    "enabled": boolean(),
    "tax_level": one_of(("store", "category", "product")),
    "pricing_mode": one_of(("inclusive", "exclusive")),
    "default_tax_id": text(empty=True),
    "taxes": array(_tax),
}
TAX_CONFIG = record(_tax_config, required=tuple(_tax_config))
JOBS_LOSE = record({"keep_work": boolean()})
JOBS_NEXT = record({"fail": text(), "duration_s": number(minimum=0)})
REJECT = record({"external_ids": array(_id), "reason": text()}, required=("external_ids",))
EMPTY = record({})
