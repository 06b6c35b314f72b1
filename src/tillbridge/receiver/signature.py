"""Signatures of deliveries. Specification: Events, Transport (X-Service-Signature)."""

import hmac
from collections.abc import Iterable


def matches(body: bytes, signature: str, secrets: Iterable[bytes]) -> list[bool]:
    """For each of `secrets`: whether `signature` is the lowercase hex HMAC-SHA256 of the raw body.

    Takes the same time whichever bytes differ; whatever else stands in the header is False.
    """
    given = signature.encode("ascii") if signature.isascii() else b""
    return [
        hmac.compare_digest(hmac.digest(secret, body, "sha256").hex().encode("ascii"), given)
        for secret in secrets
    ]
