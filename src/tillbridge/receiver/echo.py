"""Proves from outside that an address leads to this very bridge: a nonce goes in, its proof out.

Nothing is kept: the proof is an HMAC of the nonce under a key of this life of the receiver. Whoever
asks learns nothing but that a bridge is here, and no other bridge can answer in its stead.
"""

import hmac
import re
import secrets

NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}")
PROOF = re.compile(
    r"proof: ([0-9a-f]{64})(?![0-9a-f])"
)  # also where JSON has escaped what is before it


class Echo:
    """The two ends of it: the receiver answers, and whoever sent the nonce checks."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def new_nonce(self) -> str:
        """Return a nonce that nobody can guess."""
        return secrets.token_urlsafe(24)

    def answer(self, nonce: str) -> str:
        """Return the line for a nonce; "" for what is none."""
        return f"proof: {self._proof(nonce)}\n" if NONCE.fullmatch(nonce) else ""

    def proves(self, nonce: str, text: str) -> bool:
        """Whether a text that came back holds the proof of this nonce."""
        wanted = self._proof(nonce)
        return any(hmac.compare_digest(found, wanted) for found in PROOF.findall(text))

    def _proof(self, nonce: str) -> str:
        return hmac.digest(self._key, b"tillbridge-echo\0" + nonce.encode(), "sha256").hex()
