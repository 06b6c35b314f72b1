"""Many bridges seen from one place: each signs how it is; a folder of that is read at a glance.

What a bridge reports of itself to whoever looks after many, signed, and where it goes.
"""

import asyncio
import base64
import binascii
import hashlib
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import BaseModel, Field, ValidationError

from tillbridge.config.secrets import resolve_secret
from tillbridge.core.context import BridgeContext
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.log import get_logger, learn_secret
from tillbridge.core.network import http_session
from tillbridge.ledger.vault import vault_name
from tillbridge.model.instant import from_iso, to_iso

if TYPE_CHECKING:
    from tillbridge.ledger.vault import Vault

# -- Signatures as `minisign` makes and checks them: Ed25519 over the BLAKE2b of a file.
#
# The format is a public one (https://jedisct1.github.io/minisign/), so that whoever collects files
# of two hundred bridges can check them without this program.


_PURE, _HASHED = b"Ed", b"ED"
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
        if kind != _PURE:
            msg = "it is no public key"
            raise NotSigned(msg)
        return cls(rest[:_ID], rest[_ID:])

    def __str__(self) -> str:
        """Return the one line that `minisign -P` takes."""
        return base64.b64encode(_PURE + self.name + self.raw).decode()

    def check(self, content: bytes, signature: str) -> str:
        """Return the comment that was signed with the content. Raises NotSigned."""
        lines = signature.splitlines()
        starts = zip(lines[::2], (_UNTRUSTED, _TRUSTED), strict=False)
        if len(lines) != 4 or not all(line.startswith(start) for line, start in starts):
            msg = "the signature's file has not the four lines it should have"
            raise NotSigned(msg)
        kind, rest = _decoded(lines[1], _ID + _SIGNATURE)
        comment = lines[2].removeprefix(_TRUSTED)
        if kind != _HASHED or rest[:_ID] != self.name:
            msg = "it was signed with another key"
            raise NotSigned(msg)
        key = Ed25519PublicKey.from_public_bytes(self.raw)
        try:
            key.verify(rest[_ID:], hashlib.blake2b(content).digest())
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
        signature = self._key.sign(hashlib.blake2b(content).digest())
        whole = self._key.sign(signature + comment.encode())
        return (
            f"{_UNTRUSTED}signature of a tillbridge\n"
            f"{base64.b64encode(_HASHED + self._name + signature).decode()}\n"
            f"{_TRUSTED}{comment}\n"
            f"{base64.b64encode(whole).decode()}\n"
        )


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


FORMAT = 1


@dataclass(frozen=True, slots=True)
class Report:
    """A bridge at a moment (ms): `status` is the document of `tillbridge status --json`."""

    bridge: str
    at_ms: int
    status: Mapping[str, Any]

    @property
    def glance(self) -> "Glance":
        """Return what a list of bridges shows of the status. Raises NotSigned if it is none."""
        try:
            return Glance.model_validate(self.status)
        except ValidationError as failure:
            place = ".".join(map(str, failure.errors(include_url=False)[0]["loc"]))
            msg = f"its status is not of the form that a bridge writes ({place})"
            raise NotSigned(msg) from None


class _Verdict(BaseModel):
    level: str = ""
    text: str = ""


class _Problem(BaseModel):
    code: str
    store: str = ""


class _Bridge(BaseModel):
    version: str = ""


class _Today(BaseModel):
    orders: int = 0
    revenue: dict[str, int] = Field(default_factory=dict)


class _Orders(BaseModel):
    waiting: int = 0
    today: _Today | None = None  # bridges before 0.2 do not say it


class _Store(BaseModel):
    orders: _Orders = Field(default_factory=_Orders)


class Glance(BaseModel):
    """The part of a status that a list of bridges shows."""

    stores: dict[str, _Store] = Field(default_factory=dict)

    verdict: _Verdict = Field(default_factory=_Verdict)
    problems: list[_Problem] = Field(default_factory=list)
    bridge: _Bridge = Field(default_factory=_Bridge)


@dataclass(frozen=True, slots=True)
class SignedReport:
    """The two files."""

    content: bytes
    signature: bytes

    @classmethod
    def of(cls, report: Report, key: SigningKey) -> "SignedReport":
        """Sign it."""
        document = {
            "format": FORMAT,
            "bridge": report.bridge,
            "at": to_iso(report.at_ms),
            "status": report.status,
        }
        content = json.dumps(document, ensure_ascii=False, indent=1).encode()
        comment = f"timestamp:{report.at_ms // 1000}\tfile:{report.bridge}.json"
        return cls(content, key.sign(content, comment).encode())

    def read(self, key: PublicKey) -> Report:
        """Return what it says. Raises NotSigned, also for what is signed and no report."""
        try:
            key.check(self.content, self.signature.decode())
            document = json.loads(self.content)
            report = Report(
                str(document["bridge"]), from_iso(str(document["at"])), dict(document["status"])
            )
            known = document["format"]
        except NotSigned:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as slip:
            msg = f"it is no report of a bridge: {slip}"
            raise NotSigned(msg) from slip
        if known != FORMAT:
            msg = f"its format is {known}, and this program reads {FORMAT}"
            raise NotSigned(msg)
        return report


log = get_logger()

_TIMEOUT_S = 20.0
_KEY = "fleet/signing_key"


def signing_key(vault: "Vault") -> SigningKey:
    """Return the bridge's own key; it is made when it is first needed."""
    stored = vault.get(_KEY)
    if stored is not None:
        return SigningKey.from_secret(stored)
    key = SigningKey.new()
    vault.put(_KEY, key.secret)
    return key


class StatusSender:
    """Sends reports of `status`. Failures are logged when they begin and end."""

    def __init__(
        self, bridge: BridgeContext, status: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> None:
        self._bridge = bridge
        self._fleet = bridge.settings.fleet
        self._key = signing_key(bridge.ledger.vault)
        self._status = status
        self._failing: set[str] = set()

    def plan(self) -> None:
        """Let a report be sent every `every_s` seconds."""
        self._bridge.scheduler.every("fleet", self._fleet.every_s, self.send)

    async def send(self) -> None:
        """Send one report."""
        name = self._fleet.called
        report = Report(name, self._bridge.clock.now_ms(), await self._status())
        signed = SignedReport.of(report, self._key)
        # The signature comes last: whoever sees it finds the content that it signs.
        files = {f"{name}.json": signed.content, f"{name}.json.minisig": signed.signature}
        if self._fleet.folder is not None:
            folder = self._bridge.base_dir / self._fleet.folder
            self._report("folder", await asyncio.to_thread(_write, folder, files))
        if self._fleet.url:
            self._report("url", await self._put(self._fleet.url.rstrip("/"), files))

    async def _put(self, url: str, files: Mapping[str, bytes]) -> str:
        """Put the files into a folder of an HTTP server; return why that failed, or ""."""
        try:
            headers = self._headers()
        except ConfigError as failure:
            return failure.text
        try:
            async with http_session(url, min(_TIMEOUT_S, self._fleet.every_s)) as http:
                for name, content in files.items():
                    async with http.put(
                        f"{url}/{name}", data=content, headers=headers, allow_redirects=False
                    ) as answer:
                        if answer.status >= 300:
                            return f"HTTP {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as failure:
            return type(failure).__name__
        return ""

    def _headers(self) -> dict[str, str]:
        """Read the token now, so that a new one counts without a restart. Raises ConfigError."""
        if self._fleet.token is None:
            return {}
        secret = resolve_secret(
            self._fleet.token,
            key="fleet.token",
            base_dir=self._bridge.base_dir,
            from_vault=lambda: self._bridge.ledger.vault.get(vault_name("fleet.token")),
        ).get_secret_value()
        learn_secret(secret)
        return {"Authorization": f"Bearer {secret}"}

    def _report(self, place: str, failure: str) -> None:
        if failure and place not in self._failing:
            self._failing.add(place)
            log.warning("fleet.not_sent", to=place, detail=failure)
        elif not failure and place in self._failing:
            self._failing.remove(place)
            log.info("fleet.sent", to=place)


def _write(folder: Path, files: Mapping[str, bytes]) -> str:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            fresh = folder / f".{name}.new"
            fresh.write_bytes(content)
            fresh.replace(folder / name)
    except OSError as failure:
        return failure.strerror or type(failure).__name__
    return ""


_RANK = {"untrusted": 0, "down": 1, "silent": 2, "warning": 3, "ok": 4}

_CLOCKS_DIFFER_S = 300.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One bridge: `level` is ok, warning, silent, down or untrusted; `age_s` None if unknown.

    `orders_today`, `revenue_today` (minor units by currency) and `waiting` are of all its `stores`;
    None, or empty, where the report does not say it.
    """

    bridge: str
    level: str
    text: str
    age_s: float | None
    version: str = ""
    problems: tuple[str, ...] = ()
    stores: int | None = None
    orders_today: int | None = None
    waiting: int | None = None
    revenue_today: Mapping[str, int] = field(default_factory=dict)


def read_keys(text: str) -> Mapping[str, PublicKey]:
    """Return the bridges' keys of lines `NAME KEY`; # begins a comment. Raises NotSigned."""
    keys = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        if len(fields) != 2:
            msg = f"line {number} is not: NAME KEY"
            raise NotSigned(msg)
        try:
            keys[fields[0]] = PublicKey.read(fields[1])
        except NotSigned as slip:
            msg = f"line {number}: {slip}"
            raise NotSigned(msg) from slip
    return keys


def look(
    folder: Path, keys: Mapping[str, PublicKey], *, now_ms: int, silent_after_s: float
) -> list[Seen]:
    """Return every bridge that has a key or a report, the worst first. Raises OSError."""
    names = keys.keys() | {path.stem for path in folder.glob("*.json")}
    seen = [_one(folder, name, keys.get(name), now_ms, silent_after_s) for name in names]
    return sorted(seen, key=lambda each: (_RANK[each.level], each.bridge))


def gathered(folder: Path, keys: Path, *, now_ms: int, silent_after_s: float) -> list[Seen]:
    """Return every bridge of a folder of reports and a file of keys. Raises ConfigError."""
    try:
        known = read_keys(keys.read_text(encoding="utf-8"))
        if not folder.is_dir():
            raise ConfigError(
                _("{path} is not a folder.").format(path=folder),
                fix=_("Name the folder where the reports are collected."),
            )
        return look(folder, known, now_ms=now_ms, silent_after_s=silent_after_s)
    except (NotSigned, UnicodeDecodeError) as slip:
        raise ConfigError(
            _("{path}: {slip}.").format(path=keys, slip=slip),
            fix=_("Copy the lines that `tillbridge fleet key` prints on each bridge."),
        ) from slip
    except OSError as failure:
        text = _("{path} cannot be read: {detail}.")
        raise ConfigError(
            text.format(path=failure.filename, detail=failure.strerror),
            fix=_("Name a file of keys and a folder that you have permission to read."),
        ) from failure


def summary(seen: list[Seen]) -> str:
    """Return the whole in a sentence."""
    well = sum(each.level == "ok" for each in seen)
    return ngettext(
        "{well} of {n} bridge is working normally.",
        "{well} of {n} bridges are working normally.",
        len(seen),
    ).format(well=well, n=len(seen))


def _one(
    folder: Path, name: str, key: PublicKey | None, now_ms: int, silent_after_s: float
) -> Seen:
    if key is None:
        return Seen(name, "untrusted", _("Its key is not in the key file."), None)
    content, signature = folder / f"{name}.json", folder / f"{name}.json.minisig"
    if not content.exists():
        return Seen(name, "silent", _("No report yet."), None)
    try:
        report = SignedReport(content.read_bytes(), signature.read_bytes()).read(key)
        glance = report.glance
    except FileNotFoundError:
        return Seen(name, "untrusted", _("Its report is not signed."), None)
    except NotSigned as slip:
        text = _("Its report cannot be trusted: {slip}.").format(slip=slip)
        return Seen(name, "untrusted", text, None)
    if report.bridge != name:
        text = _("The report under this name is from {bridge}.").format(bridge=report.bridge)
        return Seen(name, "untrusted", text, None)
    age_s = (now_ms - report.at_ms) / 1000
    verdict, version = glance.verdict, glance.bridge.version
    problems = tuple(
        f"{each.store}: {each.code}" if each.store else each.code for each in glance.problems
    )
    stores = [each.orders for each in glance.stores.values()]
    todays = [each.today for each in stores if each.today is not None]
    revenue: Counter[str] = Counter()
    for each in todays:
        revenue.update(each.revenue)
    orders = sum(each.orders for each in todays) if todays else None
    waiting = sum(each.waiting for each in stores)
    counts = (version, problems, len(stores), orders, waiting, dict(revenue))
    if age_s < -_CLOCKS_DIFFER_S:
        text = _("Its clock is {n} minutes ahead, so the age of its report is unknown.")
        return Seen(name, "warning", text.format(n=round(-age_s / 60)), None, *counts)
    if age_s > silent_after_s:
        text = _("No report for {n} minutes. Last: {text}")
        text = text.format(n=round(age_s / 60), text=verdict.text)
        return Seen(name, "silent", text, age_s, *counts)
    known = verdict.level if verdict.level in _RANK else "down"
    return Seen(name, known, verdict.text, age_s, *counts)
