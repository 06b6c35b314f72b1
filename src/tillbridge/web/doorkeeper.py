"""Lets visitors in: this machine's own where no password is set, else those who sign in."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from tillbridge.core.clock import Clock
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.web.door import host_allowed, proxy_header
from tillbridge.web.roles import Role, User, Visitor
from tillbridge.web.sessions import Sessions
from tillbridge.web.throttle import Throttle, source_of

COOKIE = "tillbridge_session"
_REMEMBERED_S = 600.0  # a scraper's password is not worth 50 ms of a processor each time
_REMEMBERED = 20

log = get_logger()


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Who may come: users by name (none: this machine's only), names the page answers to."""

    users: Mapping[str, User] = field(default_factory=dict)
    allowed_hosts: Collection[str] = ()
    session_idle_s: float = 14_400
    session_longest_s: float = 57_600


@dataclass(frozen=True, slots=True)
class Turned:
    """A visitor who may not come in as they are: an HTTP status, and what to do instead."""

    status: int
    text: str


class Doorkeeper:
    """Decides who a request is from. Used from the event loop."""

    def __init__(self, rules: AccessRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._sessions = Sessions(idle_s=rules.session_idle_s, longest_s=rules.session_longest_s)
        self._throttle = Throttle()
        self._hashing = asyncio.Lock()  # one at a time: each takes 19 MiB
        self._decoy = ""
        self._key = secrets.token_bytes(32)
        self._machines: OrderedDict[bytes, tuple[Visitor, float]] = OrderedDict()

    def obey(self, rules: AccessRules) -> None:
        """Let other rules count; who has another password or role now has to sign in again."""
        before, self._rules = self._rules.users, rules
        same = {name for name, user in rules.users.items() if before.get(name) == user}
        self._sessions.obey(
            idle_s=rules.session_idle_s,
            longest_s=rules.session_longest_s,
            stays=lambda visitor: visitor.name in same,
        )
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

    def visitor(self, request: web.Request, *, person: bool = True) -> Visitor | Turned | None:
        """Return who it is; None: they have to sign in."""
        if self._rules.users:
            secret = request.cookies.get(COOKIE, "")
            return self._sessions.visitor(secret, self._clock.monotonic(), person=person)
        if header := proxy_header(request.headers):
            return Turned(
                403,
                _(
                    "This page was asked through a proxy or tunnel ({header}), and has no "
                    "password. Set one: run `tillbridge password`, put its line into "
                    "[status_page.users]; or open the page on the "
                    "bridge's own machine. See docs/page.md."
                ).format(header=header),
            )
        return Visitor(Role.TECHNICIAN)

    async def machine(self, request: web.Request) -> Visitor | Turned | None:
        """Return who a program is: as `visitor`, or by HTTP Basic with a user's password."""
        found = self.visitor(request, person=False)
        if found is not None:
            return found
        name, password = _basic(request.headers.get("Authorization", ""))
        if not name:
            return None
        now = self._clock.monotonic()
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

    async def check(self, name: str, password: str, source: str) -> Visitor | Turned | None:
        """Return who has this name and password; None for nobody, Turned where one must wait.

        `source` is where the request comes from (see `source_of`).
        """
        # Brings the hash function: a bridge without passwords needs none of it.
        from tillbridge.web.passwords import (  # noqa: PLC0415 -- see above
            decoy,
            password_fits,
        )

        async with self._hashing:
            wait = self._throttle.wait_s(source, name, self._clock.monotonic())
            if wait > 0:
                return Turned(
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
                self._throttle.failed(source, name, self._clock.monotonic())
                # Never the name: people type their password there.
                log.warning("status_page.wrong_password", known_name=user is not None)
                return None
            self._throttle.worked(source, name)
            return Visitor(user.role, name)

    def sign_in(self, visitor: Visitor) -> str:
        """Return the secret id of a new session."""
        return self._sessions.begin(visitor, self._clock.monotonic())

    def sign_out(self, request: web.Request) -> None:
        """End the session of a request."""
        self._sessions.end(request.cookies.get(COOKIE, ""))

    def browser(self, request: web.Request) -> str:
        """Return what tells one browser from another, for what each may have one of."""
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
