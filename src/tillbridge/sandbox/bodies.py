"""The request bodies of the specification, field by field.

Which fields are required is the sandbox's choice where the specification does not say (see
docs/sandbox.md).
"""

from tillbridge.sandbox.schema import (
    Check,
    array,
    boolean,
    email,
    instant,
    integer,
    money,
    number,
    one_of,
    pattern,
    record,
    text,
    url,
)

MENU_SYNC_DIRECTIONS = ("none", "quiqqy_to_pos", "pos_to_quiqqy", "bidirectional")
PUSH_DIRECTIONS = ("pos_to_quiqqy", "bidirectional")
STORE_STATUSES = ("active", "inactive")
REASON_CODES = (
    "ITEM_OUT_OF_STOCK",
    "STORE_CLOSED",
    "POS_OFFLINE",
    "CAPACITY",
    "PRICE_MISMATCH",
    "OTHER",
)
LIFECYCLE = ("created", "accepted", "preparing", "ready", "completed", "cancelled")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_id = text(at_most=500)
_optional_text = text(empty=True)

# Onboarding and tokens

_address = record(
    dict.fromkeys(("street_address", "city", "state", "country", "zip"), _optional_text)
)

SIGNUP = record(
    {
        "location_id": _id,
        "store_name": text(),
        "email": email(),
        "first_name": _optional_text,
        "last_name": _optional_text,
        "business_phone": pattern(
            r"(\+[1-9][0-9 ().-]{5,20})?", "a phone number in international format (+...)"
        ),
        "address": _address,
        "locale": pattern(
            r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*", "a language-region tag, such as en-US"
        ),
        "redirect_uri": url(),
        "state": text(),
        "flow_type": one_of(("login", "signup")),
        "client_id": text(),
    },
    required=("email", "redirect_uri", "state"),
)

TOKEN_BY_CODE = record(
    {
        "grant_type": one_of(("authorization_code",)),
        "code": text(),
        "redirect_uri": text(),
        "client_id": text(),
        "client_secret": text(),
    },
    required=("grant_type", "code", "redirect_uri", "client_id", "client_secret"),
)


def token_request(scope_field: str) -> Check:
    """One endpoint, two bodies: `grant_type` says which. The name of the scope's field is ours."""
    by_credentials = record(
        {
            "grant_type": one_of(("client_credentials",)),
            "client_id": text(),
            "client_secret": text(),
            "audience": text(),
            scope_field: text(),
        },
        required=("grant_type", "client_id", "client_secret"),
    )
    grants = one_of(("authorization_code", "client_credentials"))
    any_grant = record({"grant_type": grants}, required=("grant_type",), other_fields=True)

    def check(value: object) -> None:
        grant = value.get("grant_type") if isinstance(value, dict) else None
        if grant == "client_credentials":
            by_credentials(value)
        elif grant == "authorization_code":
            TOKEN_BY_CODE(value)
        else:
            any_grant(value)

    return check


REFRESH = record(
    {"grant_type": one_of(("refresh_token",)), "refresh_token": text()},
    required=("grant_type", "refresh_token"),
)

# Stores and integrations

_changeable: dict[str, Check] = {
    "webhook_url": url(),
    "notification_email": email(),
    "menu_sync_direction": one_of(MENU_SYNC_DIRECTIONS),
    "auto_accept_orders": boolean(),
}

INTEGRATE = record({**_changeable, "external_store_id": _id}, required=("webhook_url",))


def integration_update(rotation_field: str) -> Check:
    """The body that changes an integration; the rotation field has a name of its own."""
    return record({**_changeable, rotation_field: boolean()})


STORE_STATUS = record({"status": one_of(STORE_STATUSES)}, required=("status",))

_time = pattern(r"([01]\d|2[0-3]):[0-5]\d|24:00", "a time of day as HH:MM")
OPENING = record({"open": _time, "close": _time}, required=("open", "close"))


def store_settings(*, accept_unknown: bool) -> Check:
    """The store settings body, in camelCase."""
    return record(
        {
            "name": text(),
            "description": _optional_text,
            "imageUrl": url(empty=True),
            "address": _address,
            "availability": record(dict.fromkeys(WEEKDAYS, array(OPENING))),
            "deliverySettings": record(
                {
                    "enabled": boolean(),
                    "min_order_amount": money(),
                    "delivery_fee": money(),
                    "radius_km": number(minimum=0),
                }
            ),
            "contactDetails": record({"phone": _optional_text, "email": email()}),
        },
        other_fields=accept_unknown,
    )


# Menus

_categories = array(record({"external_id": _id, "name": text()}, required=("external_id", "name")))
_add_ons = array(
    record(
        {"external_id": _id, "name": text(), "price": money()},
        required=("external_id", "name", "price"),
    )
)
_addon_groups = array(
    record(
        {
            "external_id": _id,
            "name": text(),
            "min_select": integer(minimum=0),
            "max_select": integer(minimum=0),
            "required": boolean(),
            "add_ons": array(_id),
        },
        required=("external_id", "name"),
    )
)
_variant = record(
    {"external_id": _id, "variant_name": text(), "price": money(), "available": boolean()},
    required=("external_id", "variant_name", "price"),
)
_tax = record(
    {
        "name": text(),
        "components": array(
            record({"agency": text(), "rate": number(minimum=0)}, required=("agency", "rate"))
        ),
    },
    required=("name", "components"),
)
_item_fields: dict[str, Check] = {
    "external_id": _id,
    "name": text(),
    "description": _optional_text,
    "price": money(),
    "image_url": url(empty=True),
    "available": boolean(),
    "categories": array(_id),
    "addon_groups": array(_id),
    "variant_type": text(),
    "variants": array(_variant),
    "tax": _tax,
    "product_type": text(),
}
_items = array(record(_item_fields, required=("external_id", "name", "price")))

ITEM_PATCH = record(_item_fields)

_menu = record(
    {
        "external_id": _id,
        "name": text(),
        "description": _optional_text,
        "categories": _categories,
        "items": _items,
        "add_ons": _add_ons,
        "addon_groups": _addon_groups,
    },
    required=("external_id", "name"),
)
_menus_push = record(
    {"menus": array(_menu, at_least=1), "add_ons": _add_ons, "addon_groups": _addon_groups},
    required=("menus",),
)
_flat_push = record(
    {
        "menu_name": text(),
        "items": _items,
        "categories": _categories,
        "add_ons": _add_ons,
        "addon_groups": _addon_groups,
    },
    required=("menu_name", "items"),
)


def menu_push(value: object) -> None:
    """The preferred shape (`menus[]`), or the flat one."""
    if isinstance(value, dict) and "menus" in value:
        _menus_push(value)
    else:
        _flat_push(value)


BATCH = record(
    {
        "add": _items,
        "update": _items,
        "delete": array(_id),
        "categories": _categories,
        "add_ons": _add_ons,
        "addon_groups": _addon_groups,
    }
)

AVAILABILITY = record(
    {
        "items": array(
            record(
                {"external_id": _id, "available": boolean(), "snooze_until": instant()},
                required=("external_id", "available"),
            ),
            at_least=1,
        )
    },
    required=("items",),
)

TABLES = record(
    {
        "tables": array(
            record(
                {
                    "external_id": _id,
                    "name": text(),
                    "seats": integer(minimum=0),
                    "zone": _optional_text,
                },
                required=("external_id", "name"),
            )
        )
    },
    required=("tables",),
)

# Orders

EMPTY = record({})


def order_status(field: str) -> Check:
    """The body of the status call; its field has a name of its own."""
    return record({field: one_of(LIFECYCLE)}, required=(field,))


CANCEL = record(
    {"reason": text(at_most=1000), "reason_code": one_of(REASON_CODES), "message": _optional_text},
    required=("reason", "reason_code"),
)
