"""The receiver's own certificate: taken up anew whenever its files change, without a restart.

A new pair is first tried in a context of its own; only a sound one replaces what is served. New
connections get it, and those that are open go on as they are.
"""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.scheduler import Scheduler
from tillbridge.ledger.problems import ProblemTracker

log = get_logger()

WARN_DAYS = 14
_DAY_MS = 86_400_000
_LOOK_S = 5.0

_Stamp = Sequence[tuple[int, int, int] | None]


@dataclass(frozen=True, slots=True)
class Files:
    """The PEM files: the certificate with its chain, and its key."""

    certificate: Path
    key: Path

    def stamp(self) -> _Stamp:
        """Return what changes when a file does."""
        return [_stamp(path) for path in (self.certificate, self.key)]


class LiveCertificate:
    """Keeps `context` with the pair that stands in the files. Raises ConfigError at first."""

    def __init__(self, files: Files, tracker: ProblemTracker, clock: Clock) -> None:
        self._files = files
        self._tracker = tracker
        self._clock = clock
        self._seen = files.stamp()
        try:
            _try(files)
        except (OSError, ValueError) as failure:
            raise ConfigError(
                _("receiver.tls_cert: the certificate cannot be used: {detail}.").format(
                    detail=_why(failure, files)
                ),
                fix=_("Name the PEM files of a certificate (with its chain) and of its key."),
            ) from None
        self.context = _context(files)
        self._ends_ms = _ends_ms(files.certificate)
        self._close_broken()

    def look(self) -> None:
        """Take up a new pair if there is one, and tell how long the one in force is good for."""
        stamp = self._files.stamp()
        if stamp != self._seen:
            self._seen = stamp
            self._take_up()
        self.count_down()

    def count_down(self) -> None:
        """Open and close the problems of a certificate that ends."""
        left_ms = self._ends_ms - self._clock.now_ms()
        if left_ms <= 0:
            self._tracker.close("receiver.certificate_ending")
            self._tracker.open("receiver.certificate_expired")
            return
        self._tracker.close("receiver.certificate_expired")
        if left_ms < WARN_DAYS * _DAY_MS:
            self._tracker.open("receiver.certificate_ending", days=left_ms // _DAY_MS)
        else:
            self._tracker.close("receiver.certificate_ending")

    def plan(self, scheduler: Scheduler) -> None:
        """Let it be looked for a new pair every few seconds."""

        async def look() -> None:
            self.look()

        scheduler.every("receiver.certificate", _LOOK_S, look, first_s=_LOOK_S)

    def _take_up(self) -> None:
        try:
            _try(self._files)
            ends_ms = _ends_ms(self._files.certificate)
            self.context.load_cert_chain(self._files.certificate, self._files.key)
        except (OSError, ValueError) as failure:
            detail = _why(failure, self._files)
            self._tracker.open("receiver.certificate_broken", detail=detail)
            return
        self._ends_ms = ends_ms
        self._close_broken()
        log.info("receiver.certificate_reloaded", days=(ends_ms - self._clock.now_ms()) // _DAY_MS)

    def _close_broken(self) -> None:
        self._tracker.close("receiver.certificate_broken")


def _context(files: Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key, password=_no_password)
    return context


def _try(files: Files) -> None:
    """Raise OSError (ssl.SSLError is one) or ValueError where the pair is none."""
    _context(files)


def _no_password() -> str:
    # Without this OpenSSL asks at the terminal, and a daemon would wait for ever.
    msg = "the key is protected by a password"
    raise ValueError(msg)


def _ends_ms(path: Path) -> int:
    from cryptography import x509  # noqa: PLC0415 -- only where the receiver serves TLS itself

    ends = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    return int((ends - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def _why(failure: Exception, files: Files) -> str:
    if isinstance(failure, ssl.SSLError):
        if failure.reason == "KEY_VALUES_MISMATCH":
            return _("the key does not belong to the certificate")
        return _("the files are no certificate and key ({reason})").format(
            reason=failure.reason or "PEM"
        )
    if isinstance(failure, OSError):
        missing = [path for path in (files.certificate, files.key) if not path.is_file()]
        path = failure.filename or (missing[0] if missing else files.certificate)
        return f"{path}: {failure.strerror or failure}"
    return str(failure)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
