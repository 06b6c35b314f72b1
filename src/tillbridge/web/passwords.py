"""Passwords of the page: Argon2id, as the cryptography library brings it.

Imported only where passwords are configured, or made.
"""

import os

from cryptography.exceptions import InvalidKey, UnsupportedAlgorithm
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

# 19 MiB, two passes: OWASP's choice for small machines, some 50 ms on a till's.
_MEMORY_KIB, _PASSES, _LANES = 19_456, 2, 1
_SALT_BYTES, _HASH_BYTES = 16, 32
SHORTEST = 8
_MOST_BYTES = 1024


def password_hash(password: str) -> str:
    """Return the PHC text (`$argon2id$...`) of a password, with a salt of its own.

    Raises ConfigError for one that is too short, and where OpenSSL is too old for Argon2.
    """
    if len(password) < SHORTEST:
        raise ConfigError(
            _("The password is too short."),
            fix=_("Use at least {n} characters; several words are best.").format(n=SHORTEST),
        )
    try:
        kdf = Argon2id(
            salt=os.urandom(_SALT_BYTES),
            length=_HASH_BYTES,
            iterations=_PASSES,
            lanes=_LANES,
            memory_cost=_MEMORY_KIB,
        )
        return kdf.derive_phc_encoded(_bytes(password))
    except UnsupportedAlgorithm as failure:
        raise ConfigError(
            _("This machine's OpenSSL knows no Argon2."),
            fix=_("Install the cryptography package from its wheel, or OpenSSL 3.2 or newer."),
        ) from failure


def password_fits(password: str, phc: str) -> bool:
    """Return whether the password is that of the hash; takes some 50 ms of a processor."""
    try:
        Argon2id.verify_phc_encoded(_bytes(password), phc)
    except (InvalidKey, ValueError):
        return False
    return True


def decoy() -> str:
    """Return a hash that nobody has the password of, so that unknown names take as long."""
    return password_hash(os.urandom(16).hex())


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogateescape")[:_MOST_BYTES]
