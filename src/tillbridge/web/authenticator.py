"""Who a request is from, and whether it may come: users, sessions, hosts, proxies, guessing."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from tillbridge.config.bridge import StatusPageSettings
from tillbridge.config.secrets import resolve_secret
from tillbridge.config.values import is_loopback
from tillbridge.core.actor import Actor, Role
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.web.passwords import decoy, password_fits


@dataclass(frozen=True, slots=True)
class User:
    """Someone who may sign in: a role, and the Argon2id hash of the password (PHC text)."""

    role: Role
    password_hash: str


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at the page: the name they signed in with, "" where no password is asked for."""

    role: Role
    name: str = ""

    @property
    def who(self) -> str:
        """The visitor as the audit trail writes it."""
        return f"page:{self.name}" if self.name else "page"

    @property
    def actor(self) -> Actor:
        """The visitor as somebody who acts."""
        return Actor(self.who, self.role)


NOBODY = Visitor(Role.ANYBODY)


_HOST = re.compile(r"^(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[^\[\]:/?#@\s]+))(?::\d{1,5})?$")
_PROXY_NAMES = frozenset({"forwarded", "via", "x-real-ip", "true-client-ip", "x-client-ip"})
_PROXY_STARTS = ("x-forwarded-", "cf-", "x-original-", "tailscale-")
_PORTS = {"http": 80, "https": 443}


def host_allowed(host: str, allowed: Collection[str], own_address: str) -> bool:
    """Return whether the page answers to this Host header.

    It does to this machine's own names, to `allowed` ones, and to the very address the connection
    came to. Anything else may be a name that a stranger's site points here (DNS rebinding).
    """
    found = _HOST.match(host.strip())
    if found is None:
        return False
    name = (found["six"] or found["name"]).lower().rstrip(".")
    return (
        is_loopback(name)
        or name in {each.lower().rstrip(".") for each in allowed}
        or (bool(own_address) and name == own_address.lower())
    )


def proxy_header(headers: Mapping[str, str]) -> str:
    """Return the name of a header that only a proxy or tunnel sets, "" where there is none."""
    for name in headers:
        lower = name.lower()
        if lower in _PROXY_NAMES or lower.startswith(_PROXY_STARTS):
            return name
    return ""


def foreign_write(headers: Mapping[str, str]) -> str:
    """Return why a write does not come from this page itself, "" where it does.

    Every browser of the last ten years sends one of Sec-Fetch-Site, Origin and Referer with a
    form; a program has no business here (commands have /control).
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None and site != "same-origin":
        return f"Sec-Fetch-Site: {site}"
    host = headers.get("Host", "")
    for name in ("Origin", "Referer"):
        origin = headers.get(name)
        if origin is not None:
            return "" if same_site(origin, host) else name
    return "" if site is not None else "no Origin"


def same_site(url: str, host: str) -> bool:
    """Return whether `url` is of the site that the Host header names, whatever its scheme.

    (Behind a proxy that ends TLS the browser's https is not ours to see.)
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        own = urlsplit(f"//{host}")
        own_port = own.port or _PORTS.get(parts.scheme)
    except ValueError:
        return False
    if parts.scheme not in _PORTS or not parts.hostname:
        return False
    return parts.hostname == own.hostname and port == own_port


def safe_return(path: str) -> str:
    """Return where to go after signing in: a path of this page, never another site's address."""
    if not path.startswith("/") or path.startswith(("//", "/\\")) or "\\" in path:
        return "/"
    return path if path.isprintable() and len(path) < 2000 else "/"


_MOST = 200  # the oldest go first


@dataclass(slots=True)
class _Session:
    visitor: Visitor
    began: float
    seen: float


class Sessions:
    """The sessions of a bridge's life. A page that refreshes itself is no sign of a person."""

    def __init__(self, rules: "AccessRules") -> None:
        self._rules = rules
        self._open: OrderedDict[bytes, _Session] = OrderedDict()

    def begin(self, visitor: Visitor, now: float) -> str:
        """Return the secret id of a new session."""
        secret = secrets.token_urlsafe(32)
        self._open[_known_as(secret)] = _Session(visitor, now, now)
        while len(self._open) > _MOST:
            self._open.popitem(last=False)
        return secret

    def visitor(self, secret: str, now: float, *, person: bool = True) -> Visitor | None:
        """Return whose session it is; None if it is unknown or over.

        `person` says that somebody asked; otherwise the idle time continues.
        """
        key = _known_as(secret)
        session = self._open.get(key)
        if session is None:
            return None
        idle, longest = self._rules.session_idle_s, self._rules.session_longest_s
        if now - session.seen > idle or now - session.began > longest:
            del self._open[key]
            return None
        if person:
            session.seen = now
        return session.visitor

    def reconfigure(self, rules: "AccessRules", stays: Callable[[Visitor], bool]) -> None:
        """Let other times count, and end the sessions of those who may not stay."""
        self._rules = rules
        for key in [key for key, each in self._open.items() if not stays(each.visitor)]:
            del self._open[key]

    def end(self, secret: str) -> None:
        """Sign out."""
        self._open.pop(_known_as(secret), None)


def _known_as(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


_FREE = 4  # slips that cost nothing
_LONGEST_S = 60.0  # a stranger who keeps trying must not lock the technician out
_FORGET_S = 900.0
_NAMES = 500
_EACH_PER_MINUTE = 30


@dataclass(slots=True)
class _Slips:
    count: int
    last: float
    wait_until: float


class Throttle:
    """Counts failures by source and name, and all of a source. A refusal counts nothing.

    A source is where requests come from, see `source_of`.
    """

    def __init__(self) -> None:
        self._names: OrderedDict[tuple[str, str], _Slips] = OrderedDict()
        self._sources: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_s(self, source: str, name: str, now: float) -> float:
        """Return how many seconds until `name` may be tried from there; 0 for none."""
        waits = [0.0]
        slips = self._names.get((source, name))
        if slips is not None:
            waits.append(slips.wait_until - now)
        failures = self._sources.get(source)
        if failures is not None and len(failures) == _EACH_PER_MINUTE:
            waits.append(failures[0] + 60.0 - now)
        return max(waits)

    def failed(self, source: str, name: str, now: float) -> None:
        """Record a wrong name or password."""
        key = (source, name)
        slips = self._names.pop(key, None)
        count = 1 if slips is None or now - slips.last > _FORGET_S else slips.count + 1
        wait = 0.0 if count <= _FREE else min(_LONGEST_S, 2.0 ** min(count - _FREE, 10))
        self._names[key] = _Slips(count, now, now + wait)
        while len(self._names) > _NAMES:
            self._names.popitem(last=False)
        failures = self._sources.pop(source, None) or deque(maxlen=_EACH_PER_MINUTE)
        failures.append(now)
        self._sources[source] = failures
        while len(self._sources) > _NAMES:
            self._sources.popitem(last=False)

    def worked(self, source: str, name: str) -> None:
        """Forget the slips of a name that signed in from there."""
        self._names.pop((source, name), None)


def source_of(address: str) -> str:
    """Return what counts as one place: an IPv4 address, or the network of an IPv6 one.

    Whoever has one IPv6 address has the other 2^64 of its network too.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(found)


COOKIE = "tillbridge_session"
_REMEMBERED_S = 600.0  # a scraper's password is not worth 50 ms of a processor each time
_REMEMBERED = 20
_FORM = "$argon2id$"

log = get_logger()


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who may come: users by name (none: this machine's only), names the page answers to."""

    users: Mapping[str, User] = field(default_factory=dict)
    allowed_hosts: Collection[str] = ()
    session_idle_s: float = 14_400
    session_longest_s: float = 57_600


def access_rules(page: StatusPageSettings, base_dir: Path) -> AccessRules:
    """Return the rules. Raises ConfigError if a password's hash cannot be had, or is none."""
    users = {}
    for name, user in page.users.items():
        key = f"status_page.users.{name}.password"
        found = resolve_secret(user.password, key=key, base_dir=base_dir).get_secret_value()
        if not found.startswith(_FORM) or found.count("$") != 5:
            raise ConfigError(
                _("{key} is not an Argon2id hash.").format(key=key),
                fix=_("Make one with: tillbridge password {name}").format(name=name),
            )
        users[name] = User(Role[user.role.upper()], found)
    return AccessRules(users, page.allowed_hosts, page.session_idle_s, page.session_longest_s)


@dataclass(frozen=True, slots=True)
class Denied:
    """A visitor who may not come in as they are: an HTTP status, and what to do instead."""

    status: int
    text: str


class Authenticator:
    """Decides who a request is from. Used from the event loop."""

    def __init__(self, rules: AccessRules, clock: Clock) -> None:
        self._rules = rules
        self.clock = clock
        self._sessions = Sessions(rules)
        self._throttle = Throttle()
        self._hashing = asyncio.Lock()  # one at a time: each takes 19 MiB
        self._decoy = ""
        self._key = secrets.token_bytes(32)
        self._machines: OrderedDict[bytes, tuple[Visitor, float]] = OrderedDict()

    def reconfigure(self, rules: AccessRules) -> None:
        """Let other rules count; who has another password or role now has to sign in again."""
        before, self._rules = self._rules.users, rules
        same = {name for name, user in rules.users.items() if before.get(name) == user}
        self._sessions.reconfigure(rules, lambda visitor: visitor.name in same)
        self._machines.clear()

    @property
    def asks_for_passwords(self) -> bool:
        """Whether one has to sign in at all."""
        return bool(self._rules.users)

    def knows_host(self, request: web.Request) -> bool:
        """Return whether the page answers to the name that it was asked by."""
        return host_allowed(
            request.headers.get("Host", ""), self._rules.allowed_hosts, _own_address(request)
        )

    def visitor(self, request: web.Request, *, person: bool = True) -> Visitor | Denied | None:
        """Return who it is; None: they have to sign in."""
        if self._rules.users:
            secret = request.cookies.get(COOKIE, "")
            return self._sessions.visitor(secret, self.clock.monotonic(), person=person)
        if header := proxy_header(request.headers):
            return Denied(
                403,
                _(
                    "This page was requested through a proxy or tunnel ({header}), and has no "
                    "password. Set one: run `tillbridge password`, put its line into "
                    "[status_page.users]; or open the page on the "
                    "bridge's own machine. See docs/page.md."
                ).format(header=header),
            )
        return Visitor(Role.TECHNICIAN)

    async def machine(self, request: web.Request) -> Visitor | Denied | None:
        """Return who a program is: as `visitor`, or by HTTP Basic with a user's password."""
        found = self.visitor(request, person=False)
        if found is not None:
            return found
        name, password = _basic(request.headers.get("Authorization", ""))
        if not name:
            return None
        now = self.clock.monotonic()
        key = hmac.digest(self._key, f"{name}\0{password}".encode("utf-8", "replace"), "sha256")
        known = self._machines.get(key)
        if known is not None and now - known[1] < _REMEMBERED_S:
            return known[0]
        checked = await self.check(name, password, source_of(request.remote or ""))
        if isinstance(checked, Visitor):
            self._machines[key] = (checked, now)
            while len(self._machines) > _REMEMBERED:
                self._machines.popitem(last=False)
        return checked

    async def check(self, name: str, password: str, source: str) -> Visitor | Denied | None:
        """Return who has this name and password; None for nobody, Denied where one must wait.

        `source` is where the request comes from (see `source_of`).
        """
        async with self._hashing:
            wait = self._throttle.wait_s(source, name, self.clock.monotonic())
            if wait > 0:
                return Denied(
                    429,
                    _("Too many wrong passwords. Wait {n} seconds, then try again.").format(
                        n=int(wait) + 1
                    ),
                )
            user = self._rules.users.get(name)
            if not self._decoy:
                self._decoy = await asyncio.to_thread(decoy)
            phc = self._decoy if user is None else user.password_hash
            fits = await asyncio.to_thread(password_fits, password, phc)
            if user is None or not fits:
                self._throttle.failed(source, name, self.clock.monotonic())
                # Never the name: people type their password there.
                log.warning("status_page.wrong_password", known_name=user is not None)
                return None
            self._throttle.worked(source, name)
            return Visitor(user.role, name)

    def sign_in(self, visitor: Visitor) -> str:
        """Return the secret id of a new session."""
        return self._sessions.begin(visitor, self.clock.monotonic())

    def sign_out(self, request: web.Request) -> None:
        """End the session of a request."""
        self._sessions.end(request.cookies.get(COOKIE, ""))

    def browser(self, request: web.Request) -> str:
        """Return what identifies a browser, for what each may have one of."""
        text = request.cookies.get(COOKIE, "") or request.headers.get("User-Agent", "")
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _own_address(request: web.Request) -> str:
    transport = request.transport
    own = None if transport is None else transport.get_extra_info("sockname")
    return str(own[0]) if isinstance(own, tuple) else ""


def _basic(header: str) -> tuple[str, str]:
    scheme, _space, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        text = base64.b64decode(encoded, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    name, _colon, password = text.partition(":")
    return name, password
