"""Signatures as `minisign` makes and checks them: Ed25519 over the BLAKE2b of a file.

The format is a public one (https://jedisct1.github.io/minisign/), so that whoever collects files of
two hundred bridges can check them without this program.
"""

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_KEY, _HASHED = b"Ed", b"ED"
_ID, _PUBLIC, _SIGNATURE = 8, 32, 64
_UNTRUSTED, _TRUSTED = "untrusted comment: ", "trusted comment: "


class NotSigned(ValueError):
    """The signature is not one, or not of this key, or not of this content."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Who may have signed: eight bytes that name the key, and the key."""

    name: bytes
    raw: bytes

    @classmethod
    def read(cls, text: str) -> "PublicKey":
        """Return the key of its line, or of the file `minisign` writes. Raises NotSigned."""
        lines = [line for line in text.split("\n") if line and not line.startswith(_UNTRUSTED)]
        kind, rest = _decoded(lines[0] if lines else "", _ID + _PUBLIC)
        if kind != _KEY:
            msg = "it is no public key"
            raise NotSigned(msg)
        return cls(rest[:_ID], rest[_ID:])

    def __str__(self) -> str:
        """Return the one line that `minisign -P` takes."""
        return base64.b64encode(_KEY + self.name + self.raw).decode()

    def check(self, content: bytes, signature: str) -> str:
        """Return the comment that was signed with the content. Raises NotSigned."""
        lines = signature.splitlines()
        if (
            len(lines) != 4
            or not lines[0].startswith(_UNTRUSTED)
            or not lines[2].startswith(_TRUSTED)
        ):
            msg = "the signature's file has not the four lines it should have"
            raise NotSigned(msg)
        kind, rest = _decoded(lines[1], _ID + _SIGNATURE)
        comment = lines[2].removeprefix(_TRUSTED)
        if kind != _HASHED or rest[:_ID] != self.name:
            msg = "it was signed with another key"
            raise NotSigned(msg)
        key = Ed25519PublicKey.from_public_bytes(self.raw)
        try:
            key.verify(rest[_ID:], _hashed(content))
            key.verify(_plain(lines[3]), rest[_ID:] + comment.encode())
        except InvalidSignature:
            msg = "the content or the comment is not what was signed"
            raise NotSigned(msg) from None
        return comment


class SigningKey:
    """A bridge's own key."""

    def __init__(self, name: bytes, seed: bytes) -> None:
        self._name, self._seed = name, seed
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    @classmethod
    def new(cls) -> "SigningKey":
        """Make a key."""
        return cls(os.urandom(_ID), os.urandom(32))

    @classmethod
    def from_secret(cls, text: str) -> "SigningKey":
        """Return the key that was stored as `secret`."""
        raw = base64.b64decode(text)
        return cls(raw[:_ID], raw[_ID:])

    @property
    def secret(self) -> str:
        """The secret of it, for the vault."""
        return base64.b64encode(self._name + self._seed).decode()

    @property
    def public(self) -> PublicKey:
        """The half that others know."""
        raw = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return PublicKey(self._name, raw)

    def sign(self, content: bytes, comment: str) -> str:
        """Return the file beside the content; the comment (one line) is signed with it."""
        signature = self._key.sign(_hashed(content))
        whole = self._key.sign(signature + comment.encode())
        return (
            f"{_UNTRUSTED}signature of a tillbridge\n"
            f"{base64.b64encode(_HASHED + self._name + signature).decode()}\n"
            f"{_TRUSTED}{comment}\n"
            f"{base64.b64encode(whole).decode()}\n"
        )


def _hashed(content: bytes) -> bytes:
    return hashlib.blake2b(content).digest()


def _plain(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        msg = "it is no base64"
        raise NotSigned(msg) from None


def _decoded(text: str, length: int) -> tuple[bytes, bytes]:
    raw = _plain(text)
    if len(raw) != 2 + length:
        msg = "it has not the length it should have"
        raise NotSigned(msg)
    return raw[:2], raw[2:]
