"""Deliveries that an operator makes up: any event, honest or not."""

from typing import Any

from tillbridge.sandbox.deliveries import Delivery, Target, encode, sign


def made_up(target: Target, content: dict[str, Any], body: dict[str, Any]) -> Delivery:
    """An envelope on its way to a receiver, with what a control call's body says of it."""
    raw = body["raw_body"].encode() if "raw_body" in body else encode(content)
    return Delivery(
        delivery_id=body["delivery_id"],
        event_id=content["event_id"],
        event_type=content["event_type"],
        target=target,
        body=raw,
        retry=body.get("retry", False),
        signature=_signature(body, raw),
        extra_headers={str(name): str(value) for name, value in body.get("headers", {}).items()},
    )


def _signature(body: dict[str, Any], raw: bytes) -> str | None:
    """None is the honest one; an empty one sends no header."""
    if "secret" in body:
        return sign(raw, body["secret"])
    kind = body.get("signature", "valid")
    if kind == "wrong":
        return sign(raw, "this is not the secret")
    return "" if kind == "none" else None
