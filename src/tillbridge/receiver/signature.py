"""Signatures of deliveries. Specification: Events, Transport (X-Service-Signature)."""

import hmac
from collections.abc import Iterable


def is_signed(body: bytes, signature: str, secrets: Iterable[bytes]) -> bool:
    """Whether `signature` is the lowercase hex HMAC-SHA256 of the raw body under one of `secrets`.

    Takes the same time whichever bytes differ; whatever else stands in the header is False.
    """
    return any(matches(body, signature, secrets))


def matches(body: bytes, signature: str, secrets: Iterable[bytes]) -> list[bool]:
    """Return for each of `secrets` whether `signature` was made with it; as `is_signed`."""
    given = signature.encode("ascii") if signature.isascii() else b""
    return [
        hmac.compare_digest(hmac.digest(secret, body, "sha256").hex().encode("ascii"), given)
        for secret in secrets
    ]
