"""The key that encrypts the stored secrets: in the configuration, in a credential, or in a file.

On Windows the file is sealed: a copied data folder does not open the secrets elsewhere.
"""

import base64
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.fernet import Fernet

from tillbridge.core.errors import BridgeError, ConfigError, LedgerError, LedgerUnwritable
from tillbridge.core.i18n import _
from tillbridge.ledger.database import VAULT_FILE, write_durably

KEY_FILE = "ledger.key"
_CREDENTIAL = "ledger_key"


def fernet_of(
    data_dir: Path, *, configured: str | None, missing: Callable[[Path], BridgeError] | None
) -> Fernet:
    """Return what encrypts and decrypts: by the `configured` key, else by that of the folder.

    Where there is none, raises what `missing` makes of the path where it should be, or makes one if
    that is None. Raises ConfigError, LedgerError for what is no key.
    """
    if configured is not None:
        try:
            return Fernet(configured)
        except ValueError:
            raise ConfigError(
                _("ledger.key does not contain a key."),
                fix=_("A key is 44 characters of base64: openssl rand -base64 32"),
            ) from None
    path, key = _find_key(data_dir)
    if key is None:
        if missing is not None:
            raise missing(path)
        key = Fernet.generate_key()
        write_file(path, seal(key, machine_sealing()) + b"\n")
    try:
        return Fernet(unseal(key.strip(), machine_sealing()))
    except OSError as failure:
        raise LedgerError(
            _("The key {path} cannot be used on this machine: {detail}.").format(
                path=path, detail=failure.strerror
            ),
            fix=_(
                "Move {vault} and the key away, and run “tillbridge connect” for each store."
            ).format(vault=VAULT_FILE),
        ) from failure
    except ValueError:
        raise LedgerError(
            _("{path} does not contain a key.").format(path=path),
            fix=_("A key is 44 characters of URL-safe base64. Restore the right one."),
        ) from None


def _find_key(data_dir: Path) -> tuple[Path, bytes | None]:
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    if credentials:
        path = Path(credentials) / _CREDENTIAL
        # The unit passes an empty one if there is none.
        if (key := read_file(path)) is not None and key.strip():
            return path, key
    path = data_dir / KEY_FILE
    key = read_file(path)
    if key is not None and path.stat().st_mode & 0o077 and os.name == "posix":
        path.chmod(0o600)
    return path, key


def read_file(path: Path) -> bytes | None:
    """Return a file's content, None where there is no file. Raises LedgerError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise LedgerError(
            _("{path} cannot be read: {detail}.").format(path=path, detail=failure.strerror),
            fix=_("Give the bridge's user, and nobody else, permission to read it."),
        ) from failure


def write_file(path: Path, content: bytes) -> None:
    """Replace a file durably. Raises LedgerUnwritable."""
    try:
        write_durably(path, content)
    except OSError as failure:
        raise LedgerUnwritable(
            _("{path} cannot be written: {detail}.").format(path=path, detail=failure),
            fix=_("Free disk space, or give the bridge's user permission to write there."),
        ) from failure


# -- sealing


_MARK = b"dpapi:"


@dataclass(frozen=True, slots=True)
class Sealing:
    """A way of sealing that only this machine can undo; both functions raise OSError."""

    protect: Callable[[bytes], bytes]
    unprotect: Callable[[bytes], bytes]


def seal(key: bytes, sealing: Sealing | None) -> bytes:
    """Return the content of the key file: sealed, or the plain key if the system cannot seal."""
    return key if sealing is None else _MARK + base64.b64encode(sealing.protect(key))


def unseal(content: bytes, sealing: Sealing | None) -> bytes:
    """Return the key from the content of a key file. Raises OSError if this machine cannot."""
    if not content.startswith(_MARK):
        return content
    if sealing is None:
        raise OSError(0, "it was sealed by Windows, on the machine it comes from")
    try:
        blob = base64.b64decode(content.removeprefix(_MARK).strip(), validate=True)
    except ValueError as slip:
        raise OSError(0, "it is damaged") from slip
    return sealing.unprotect(blob)


def machine_sealing() -> Sealing | None:
    """Return how Windows seals a key for this machine; None on other systems."""
    if sys.platform == "win32":
        import pywintypes  # noqa: PLC0415 -- of pywin32, which only Windows has
        import win32crypt  # noqa: PLC0415 -- (as above)

        local_machine, no_ui = 0x4, 0x1

        def protect(content: bytes) -> bytes:
            try:
                flags = local_machine | no_ui
                return bytes(
                    win32crypt.CryptProtectData(content, "tillbridge", None, None, None, flags)
                )
            except pywintypes.error as failure:
                raise OSError(failure.winerror, failure.strerror) from failure

        def unprotect(content: bytes) -> bytes:
            try:
                return bytes(win32crypt.CryptUnprotectData(content, None, None, None, no_ui)[1])
            except pywintypes.error as failure:
                raise OSError(failure.winerror, failure.strerror) from failure

        return Sealing(protect, unprotect)
    return None
