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
_line = record(
    {
        "external_id": _nullable(_id),
        "variant_external_id": _nullable(_id),
        "quantity": integer(),
        "options": array(_option),
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
SEND = record(
    {
        "store_id": _id,
        "event_type": text(),
        "data": _anything,
        "event_id": text(),
        "delivery_id": text(),
        "body_store_id": text(),
        "body_location_id": text(),
        "signature": one_of(("valid", "wrong", "none")),
        "secret": text(),
        "raw_body": text(empty=True),
        "headers": record({}, other_fields=True),
        "retry": boolean(),
        "wait": boolean(),
    },
    required=("store_id", "event_type"),
)
JOBS_LOSE = record({"keep_work": boolean()})
JOBS_NEXT = record({"fail": text(), "duration_s": number(minimum=0)})
REJECT = record({"external_ids": array(_id), "reason": text()}, required=("external_ids",))
EMPTY = record({})
