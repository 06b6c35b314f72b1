"""Serves the pages: who asks, for what, may they, from where; the subject does the rest."""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from multidict import MultiDictProxy

from tillbridge.core.actor import Role, acting_as
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.operation import Dispatcher
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.web.authenticator import (
    COOKIE,
    NOBODY,
    Authenticator,
    Denied,
    Visitor,
    foreign_write,
    safe_return,
    source_of,
)
from tillbridge.web.site.book import (
    Action,
    Done,
    File,
    Filled,
    Found,
    Page,
    Routes,
    Visit,
    path_of,
)
from tillbridge.web.site.frame import Frame
from tillbridge.web.site.registry import BEFORE_SETUP, NAVIGATION, SUBJECTS, everything

_FLASHES = 100
_What = Page | File | Action

log = get_logger()


class Site:
    """The page of a running bridge; of one that has no store yet only how to set it up."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        authenticator: Authenticator,
        *,
        only_setup: bool = False,
    ) -> None:
        subjects = BEFORE_SETUP if only_setup else SUBJECTS
        self._home = "/setup" if only_setup else ""  # where "/" leads; "" where it is a page itself
        self._dispatcher = dispatcher
        self._authenticator = authenticator
        self._trail = dispatcher.trail
        self._clock = authenticator.clock
        self._sign_in = SignIn(authenticator, dispatcher.trail)
        self._pages = Routes[_What]((each.path, each) for each in (*everything(subjects), SIGN_IN))
        self._frame = Frame(
            NAVIGATION, subjects, asks_for_passwords=authenticator.asks_for_passwords
        )
        self._flashes: OrderedDict[str, Done] = OrderedDict()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request for a page."""
        person = "X-Live" not in request.headers
        visitor = self._authenticator.visitor(request, person=person)
        if isinstance(visitor, Denied):
            return self._trouble(NOBODY, visitor.status, visitor.text)
        known = visitor or NOBODY
        path = request.rel_url.raw_path
        if path in {"/login", "/logout"} and request.method == "POST":
            if reason := foreign_write(request.headers):
                return self._foreign(known, request, reason)
            return await (self._sign_in.enter if path == "/login" else self._sign_in.leave)(request)
        found = self._pages.find(path)
        if found is None and self._home and request.method == "GET":
            return web.Response(status=303, headers={"Location": self._home})
        if found is None:
            return self._trouble(known, 404, _("There is no such page."))
        if found.what.role > known.role:
            return self._not_yet(request, known)
        try:
            return await self._answer(request, found, known)
        except BridgeError as failure:
            log.warning("status_page.failed", path=path, kind=type(failure).__name__)
            return self._trouble(known, 503, failure.text, failure.fix)

    async def _answer(
        self, request: web.Request, found: Found[_What], visitor: Visitor
    ) -> web.StreamResponse:
        what = found.what
        if request.method in {"GET", "HEAD"}:
            visit = self._visit(request, found.params, visitor)
            if isinstance(what, File):
                return await what.give(visit)
            if isinstance(what, Page):
                return self._shown(what, visit, await what.fill(visit))
            if what.ask is None:
                raise web.HTTPMethodNotAllowed(request.method, ["POST"])
            question = await what.ask(visit)
            cancel = _came_from(request) or _back(what, visit)
            text = self._frame.question(visit, what, question, cancel=cancel)
            return _html(text)
        if request.method != "POST" or not isinstance(what, Action):
            raise web.HTTPMethodNotAllowed(request.method, ["GET"])
        if reason := foreign_write(request.headers):
            return self._foreign(visitor, request, reason)
        return await self._act(request, what, found.params, visitor)

    async def _act(
        self, request: web.Request, action: Action, params: Mapping[str, str], visitor: Visitor
    ) -> web.StreamResponse:
        fields = await _form_of(request)
        many: dict[str, list[str]] = {}
        for name, value in fields.items():
            if isinstance(value, str):
                many.setdefault(name, []).append(value)
        visit = self._visit(request, params, visitor, many)
        with acting_as(visit.actor) as actor:
            try:
                done = await action.do(visit)
            except BridgeError as failure:
                done = Done(failure.text, ok=False, fix=failure.fix)
            if not actor.noted:
                target = "/".join(part for name, part in params.items() if name != "store")
                await self._trail.note(
                    action.audit, store=params.get("store", ""), target=target, ok=done.ok
                )
        return self._redirect(done, done.to or _back(action, visit))

    def _shown(self, page: Page, visit: Visit, filled: Mapping[str, Any]) -> web.Response:
        flash = self._flashes.pop(visit.query.get("said", ""), None)
        return _html(self._frame.page(page, visit.visitor, filled, visit.now_ms, flash))

    def _redirect(self, done: Done, to: str) -> web.Response:
        said = secrets.token_urlsafe(12)
        self._flashes[said] = done
        while len(self._flashes) > _FLASHES:
            self._flashes.popitem(last=False)
        joint = "&" if "?" in to else "?"
        return web.Response(status=303, headers={"Location": f"{to}{joint}said={said}"})

    def _not_yet(self, request: web.Request, visitor: Visitor) -> web.Response:
        if visitor.role is not Role.ANYBODY:
            text = _("The role {role} may not do that.").format(role=visitor.role.word)
            return self._trouble(visitor, 403, text, _("Sign in as someone who may."))
        if request.method == "GET" and "X-Live" not in request.headers:
            to = path_of("/login", {}, {"next": request.rel_url.raw_path_qs})
            return web.Response(status=303, headers={"Location": to})
        return self._trouble(visitor, 401, _("Sign in first."), _("Open the page again."))

    def _foreign(self, visitor: Visitor, request: web.Request, reason: str) -> web.Response:
        log.warning("status_page.foreign_write", path=request.path, reason=reason)
        return self._trouble(
            visitor,
            403,
            _("This did not come from the bridge's own page, so nothing was done."),
            _(
                "Open the page again and repeat it there. Behind a proxy, let the proxy pass the "
                "Host header on; see docs/page.md."
            ),
        )

    def _trouble(self, visitor: Visitor, status: int, text: str, fix: str = "") -> web.Response:
        return _html(self._frame.trouble(visitor, status, text, fix, self._clock.now_ms()), status)

    def _visit(
        self,
        request: web.Request,
        params: Mapping[str, str],
        visitor: Visitor,
        many: Mapping[str, list[str]] | None = None,
    ) -> Visit:
        fields = many or {}
        return Visit(
            self._dispatcher,
            self._clock,
            visitor,
            params,
            dict(request.query),
            {name: values[0] for name, values in fields.items()},
            fields,
        )


def _back(action: Action, visit: Visit) -> str:
    return path_of(action.back, visit.params)


def _came_from(request: web.Request) -> str:
    """Return the page of ours that led to this one; empty where another did, or nobody knows."""
    came = urlsplit(request.headers.get("Referer", ""))
    if came.netloc != request.host or not came.path.startswith("/") or came.path[:2] == "//":
        return ""
    if came.path == request.rel_url.raw_path:
        return ""
    return f"{came.path}?{came.query}" if came.query else came.path


def _html(text: str, status: int = 200) -> web.Response:
    # A half of a character, as JSON can hold it, must not cost the whole page.
    body = text.encode("utf-8", "replace")
    return web.Response(status=status, body=body, content_type="text/html", charset="utf-8")


_MOST_CHARACTERS = 1000


async def _fill_sign_in(visit: Visit) -> Filled:
    return {"next": safe_return(visit.query.get("next", "/")), "text": "", "name": ""}


SIGN_IN = Page(
    "/login",
    _("Sign in"),
    "login.html",
    _fill_sign_in,
    role=Role.ANYBODY,
    section="/login",
    live=False,
)


class SignIn:
    """The two writes that need no role: `POST /login` and `POST /logout`."""

    def __init__(self, authenticator: Authenticator, trail: AuditTrail) -> None:
        self._authenticator = authenticator
        self._trail = trail
        self._clock = authenticator.clock
        self._frame = Frame((), (), asks_for_passwords=True)

    async def enter(self, request: web.Request) -> web.Response:
        """Check a name and password, and begin a session."""
        fields = await _form_of(request)
        name, password, to = (
            str(fields.get(field, ""))[:_MOST_CHARACTERS] for field in ("name", "password", "next")
        )
        if not self._authenticator.asks_for_passwords:
            return web.Response(status=303, headers={"Location": "/"})
        found = await self._authenticator.check(name, password, source_of(request.remote or ""))
        if not isinstance(found, Visitor):
            text = _("The name or the password is wrong.") if found is None else found.text
            return self._again(found, text, name=name, to=safe_return(to))
        secret = self._authenticator.sign_in(found)
        with acting_as(found.actor):
            await self._trail.note("page.signed_in")
        response = web.Response(status=303, headers={"Location": safe_return(to)})
        # Lax: a link in an alert's e-mail must open the page. Writes look at their origin.
        response.set_cookie(
            COOKIE, secret, httponly=True, samesite="Lax", secure=_is_https(request), path="/"
        )
        return response

    async def leave(self, request: web.Request) -> web.Response:
        """End the session."""
        found = self._authenticator.visitor(request)
        self._authenticator.sign_out(request)
        if isinstance(found, Visitor) and found.name:
            with acting_as(found.actor):
                await self._trail.note("page.signed_out")
        response = web.Response(status=303, headers={"Location": "/login"})
        response.del_cookie(COOKIE, path="/")
        return response

    def _again(self, found: Denied | None, text: str, *, name: str, to: str) -> web.Response:
        filled = {"next": to, "text": text, "name": name}
        page = self._frame.page(SIGN_IN, NOBODY, filled, self._clock.now_ms())
        headers = {"Retry-After": "60"} if found is not None else {}
        status = 401 if found is None else found.status
        return web.Response(status=status, text=page, content_type="text/html", headers=headers)


def _is_https(request: web.Request) -> bool:
    # Believed also of a proxy: who lies about it only loses the own cookie.
    return request.secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


async def _form_of(request: web.Request) -> MultiDictProxy[str | bytes | bytearray | web.FileField]:
    """Return what a form sent. Raises HTTPBadRequest for what no browser sends."""
    try:
        fields: MultiDictProxy[str | bytes | bytearray | web.FileField] = await request.post()
    except (ValueError, LookupError, AssertionError):  # no boundary, an unknown character set
        raise web.HTTPBadRequest from None
    return fields
