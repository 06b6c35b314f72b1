"""Signatures of deliveries. Specification: Events, Transport (X-Service-Signature)."""

import hmac
from collections.abc import Iterable


def is_signed(body: bytes, signature: str, secrets: Iterable[bytes]) -> bool:
    """Whether `signature` is the lowercase hex HMAC-SHA256 of the raw body under one of `secrets`.

    Takes the same time whichever bytes differ; whatever else stands in the header is False.
    """
    if not signature.isascii():
        return False
    given = signature.encode("ascii")
    matches = [
        hmac.compare_digest(hmac.digest(secret, body, "sha256").hex().encode("ascii"), given)
        for secret in secrets
    ]
    return any(matches)
