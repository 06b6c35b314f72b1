"""Serves the pages: who asks, for what, may they, from where; the subject does the rest."""

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from multidict import MultiDictProxy

from tillbridge.core.actor import Role, acting_as
from tillbridge.core.errors import BridgeError
from tillbridge.core.formats import clock_time, local_second, span, time_since
from tillbridge.core.i18n import _, in_zone, languages
from tillbridge.core.log import get_logger
from tillbridge.core.operation import Dispatcher
from tillbridge.model.instant import from_iso
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
from tillbridge.web.rendering import Frame, frame_of, policy_with_pictures, template
from tillbridge.web.site.book import (
    Action,
    Done,
    File,
    Filled,
    Page,
    Question,
    Visit,
    What,
    link,
    path_of,
    route_of,
)
from tillbridge.web.site.registry import BEFORE_SETUP, EVERYTHING, NAVIGATION

_FLASHES = 100
_BACK = "back-to"  # a field of a question: the page to return to
_SAFE_SCHEMES = {"http", "https"}
_MOST_CHARACTERS = 1000  # of a name or password
_FOREIGN = (
    _("This did not come from the bridge's own page, so nothing was done."),
    _(
        "Open the page again and repeat it there. Behind a proxy, let the proxy pass the "
        "Host header on; see docs/page.md."
    ),
)
LANGUAGE_COOKIE = "tillbridge-language"
_A_YEAR_S = 365 * 86_400
_Signing = Callable[[web.Request], Awaitable[web.Response]]

log = get_logger()


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


class Site:
    """The page of a running bridge; of one that has no store yet only how to set it up.

    `version` names the state of the bridge that a page shows which is made now.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        authenticator: Authenticator,
        *,
        version: Callable[[], str],
        only_setup: bool = False,
    ) -> None:
        self._everything = (*(BEFORE_SETUP if only_setup else EVERYTHING), SIGN_IN)
        self._home = "/setup" if only_setup else ""  # where "/" leads; "" where it is a page itself
        self.dispatcher = dispatcher
        self._authenticator = authenticator
        self._version = version
        self._pages = {each.path: each for each in self._everything if isinstance(each, Page)}
        self._actions = {each.path: each for each in self._everything if isinstance(each, Action)}
        self._flashes: OrderedDict[str, Done] = OrderedDict()

    def routes(self) -> list[web.RouteDef]:
        """Return who answers which path; the last route takes what is no page."""
        return [
            web.post("/login", partial(self._handle, self._enter)),
            web.post("/logout", partial(self._handle, self._leave)),
            web.post("/language", partial(self._handle, self._choose_language)),
            *(
                web.route("*", route_of(each.path), partial(self._handle, each))
                for each in self._everything
            ),
            web.route("*", "/{path:.*}", partial(self._handle, None)),
        ]

    async def _handle(self, what: What | _Signing | None, request: web.Request) -> web.Response:
        """Answer a request: look at who asks, whether they may, and from where they write."""
        path = request.rel_url.raw_path
        found = self._authenticator.visitor(request, person="X-Live" not in request.headers)
        if isinstance(found, Denied):
            return self._trouble(NOBODY, found.status, found.text)
        visitor = found or NOBODY
        store = request.match_info.get("store") or request.query.get("store", "")
        in_zone(self.dispatcher.zone(store))
        if what is None:
            if self._home and request.method == "GET":
                return web.Response(status=303, headers={"Location": self._home})
            return self._trouble(visitor, 404, _("There is no such page."))
        if isinstance(what, Page | File | Action) and what.role > visitor.role:
            return self._not_yet(request, visitor)
        try:
            if request.method in {"GET", "HEAD"} and isinstance(what, Page | File | Action):
                return await self._look(request, what, visitor)
            if request.method != "POST" or isinstance(what, Page | File):
                raise web.HTTPMethodNotAllowed(request.method, ["GET"])
            if reason := foreign_write(request.headers):
                log.warning("status_page.foreign_write", path=request.path, reason=reason)
                return self._trouble(visitor, 403, *_FOREIGN)
            if isinstance(what, Action):
                return await self._act(request, what, visitor)
            return await what(request)
        except BridgeError as failure:
            log.warning("status_page.failed", path=path, kind=type(failure).__name__)
            return self._trouble(visitor, 503, failure.text, failure.fix)

    async def _look(self, request: web.Request, what: What, visitor: Visitor) -> web.Response:
        visit = self._visit(request, visitor)
        if isinstance(what, File):
            return await what.give(visit)
        # Of before it is read: what changes meanwhile may be missing from the page.
        version = self._version()
        frame = await self._frame(visit)
        if isinstance(what, Page):
            return self._shown(what, visit, frame, version, await what.fill(visit))
        if what.ask is None:
            raise web.HTTPMethodNotAllowed(request.method, ["POST"])
        if isinstance(what.ask, Question):
            named = {"store": await visit.store_name()} if "store" in visit.params else {}
            question = what.ask.about({**visit.params, **named})
        else:
            question = await what.ask(visit)
        came_from = _came_from(request)
        return self._html(
            "question.html",
            visitor,
            _(what.title),
            section=what.section,
            frame=frame,
            question=question,
            here=path_of(what.path, visit.params),
            cancel=came_from or path_of(what.back, visit.params),
            # Whoever is setting up continues there.
            back=came_from if came_from.partition("?")[0] == "/setup" else "",
        )

    async def _act(self, request: web.Request, action: Action, visitor: Visitor) -> web.Response:
        form: dict[str, str] = {}
        for name, value in (await _form_of(request)).items():
            if isinstance(value, str):
                form.setdefault(name, value)
        visit = self._visit(request, visitor, form)
        with acting_as(visit.actor) as actor:
            try:
                done = await action.do(visit)
            except BridgeError as failure:
                done = Done.refused(failure)
            if not actor.noted:
                target = "/".join(part for name, part in visit.params.items() if name != "store")
                store = visit.params.get("store", "")
                await self.dispatcher.trail.note(
                    action.audit, store=store, target=target, ok=done.ok
                )
        typed = {} if done.ok else {**form, **done.typed}
        back = safe_return(form[_BACK]) if _BACK in form else path_of(action.back, visit.params)
        return self._redirect(replace(done, at=action.path, typed=typed), done.to or back)

    async def _enter(self, request: web.Request) -> web.Response:
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
            answer = self._html(
                SIGN_IN.template,
                NOBODY,
                _(SIGN_IN.title),
                code=401 if found is None else found.status,
                section=SIGN_IN.section,
                next=safe_return(to),
                text=text,
                name=name,
            )
            if found is not None:
                answer.headers["Retry-After"] = "60"
            return answer
        with acting_as(found.actor):
            await self.dispatcher.trail.note("page.signed_in")
        response = web.Response(status=303, headers={"Location": safe_return(to)})
        # Lax: a link in an alert's e-mail must open the page. Writes look at their origin.
        response.set_cookie(
            COOKIE,
            self._authenticator.sign_in(found),
            httponly=True,
            samesite="Lax",
            secure=_is_https(request),
            path="/",
        )
        return response

    async def _leave(self, request: web.Request) -> web.Response:
        """End the session."""
        found = self._authenticator.visitor(request)
        self._authenticator.sign_out(request)
        if isinstance(found, Visitor) and found.name:
            with acting_as(found.actor):
                await self.dispatcher.trail.note("page.signed_out")
        response = web.Response(status=303, headers={"Location": "/login"})
        response.del_cookie(COOKIE, path="/")
        return response

    async def _choose_language(self, request: web.Request) -> web.Response:
        """Remember in this browser which language its page is in, whatever else it asks for."""
        chosen = str((await _form_of(request)).get("language", ""))
        response = web.Response(status=303, headers={"Location": _came_from(request) or "/"})
        if chosen in languages():
            response.set_cookie(
                LANGUAGE_COOKIE,
                chosen,
                max_age=_A_YEAR_S,
                httponly=True,
                samesite="Lax",
                secure=_is_https(request),
                path="/",
            )
        return response

    async def _frame(self, visit: Visit) -> Frame:
        """Return what stands around a page: nothing for a stranger, or where nobody knows."""
        if visit.visitor.role is Role.ANYBODY:
            return Frame()
        try:
            return frame_of(await visit.status())
        except BridgeError:
            return Frame()

    def _shown(
        self, page: Page, visit: Visit, frame: Frame, version: str, filled: Filled
    ) -> web.Response:
        done = self._flashes.pop(visit.query.get("said", ""), None)
        return self._html(
            page.template,
            visit.visitor,
            _(page.title),
            section=page.section or page.path,
            live=version if page.live else "",
            frame=frame,
            flash=None if done is None else _flash(done),
            **filled,
        )

    def _redirect(self, done: Done, to: str) -> web.Response:
        key = secrets.token_urlsafe(12)
        self._flashes[key] = done
        while len(self._flashes) > _FLASHES:
            self._flashes.popitem(last=False)
        path, mark, part = to.partition("#")
        joint = "&" if "?" in path else "?"
        return web.Response(
            status=303, headers={"Location": f"{path}{joint}said={key}{mark}{part}"}
        )

    def _not_yet(self, request: web.Request, visitor: Visitor) -> web.Response:
        if visitor.role is not Role.ANYBODY:
            text = _("The role {role} may not do that.").format(role=visitor.role.word)
            return self._trouble(visitor, 403, text, _("Sign in as somebody who may, or ask them."))
        if request.method == "GET" and "X-Live" not in request.headers:
            to = path_of("/login", {}, {"next": request.rel_url.raw_path_qs})
            return web.Response(status=303, headers={"Location": to})
        return self._trouble(visitor, 401, _("Sign in first."), _("Open the page again."))

    def _trouble(self, visitor: Visitor, status: int, text: str, fix: str = "") -> web.Response:
        """Return the page that says what went wrong, and what to do."""
        title = {401: _("Sign in"), 403: _("Not allowed"), 404: _("Page not found")}.get(
            status, _("That did not work")
        )
        return self._html(
            "trouble.html", visitor, title, code=status, status=status, text=text, fix=fix
        )

    def _visit(
        self, request: web.Request, visitor: Visitor, form: Mapping[str, str] | None = None
    ) -> Visit:
        return Visit(
            self.dispatcher,
            self._authenticator.clock.now_ms(),
            visitor,
            visitor.actor,
            dict(request.match_info),
            dict(request.query),
            form or {},
            f"{'https' if _is_https(request) else 'http'}://{request.host}",
        )

    def _html(
        self,
        file: str,
        visitor: Visitor,
        title: str,
        *,
        code: int = 200,
        section: str = "",
        live: str = "",
        frame: Frame = Frame(),  # noqa: B008 -- it is frozen, so one serves all
        flash: Done | None = None,
        **filled: Any,  # noqa: ANN401 -- whatever the template shows
    ) -> web.Response:
        """Return a template in the layout of the site."""
        now_ms = self._authenticator.clock.now_ms()
        text = template(file).render(
            title=title,
            live=live,
            flash=flash,
            frame=frame,
            is_home=section == "/",
            navigation=[
                {
                    "path": line.path,
                    "title": _(line.title),
                    "icon": line.icon,
                    "here": section in {line.path, *line.also},
                    "count": frame.count if line.path == "/" else 0,
                }
                for line in NAVIGATION
                if self._is_for(visitor, line.path) and not self._is_for(visitor, line.unless)
            ],
            visitor=visitor,
            signed_in=self._authenticator.asks_for_passwords and bool(visitor.name),
            now_ms=now_ms,
            ago=lambda at: span((now_ms - _ms(at)) / 1000),
            second=local_second,
            when=lambda at: time_since(_ms(at), now_ms),
            clock=lambda at: clock_time(_ms(at), now_ms),
            link=link,
            page_is_for=partial(self._is_for, visitor),
            action=partial(self._offered, visitor),
            **filled,
        )
        # A half of a character, as JSON can hold it, must not cost the whole page.
        response = web.Response(
            status=code,
            body=text.encode("utf-8", "replace"),
            content_type="text/html",
            charset="utf-8",
        )
        if hosts := filled.get("picture_hosts"):
            response.headers["Content-Security-Policy"] = policy_with_pictures(hosts)
        return response

    def _is_for(self, visitor: Visitor, path: str) -> bool:
        page = self._pages.get(path)
        return page is not None and page.role <= visitor.role

    def _offered(self, visitor: Visitor, path: str, **parts: object) -> dict[str, Any] | None:
        """Return an action, or a page, as its button needs it; None if this visitor may not."""
        if self._is_for(visitor, path):  # a page that leads to actions
            return {"href": link(path, **parts), "title": self._pages[path].title, "asks": True}
        action = self._actions.get(path)
        if action is None or action.role > visitor.role:
            return None
        asks = action.ask is not None
        return {"href": link(path, **parts), "title": _(action.title), "asks": asks}


def _came_from(request: web.Request) -> str:
    """Return the page of ours that led to this one; empty where another did, or nobody knows."""
    came = urlsplit(request.headers.get("Referer", ""))
    if came.netloc != request.host or not came.path.startswith("/") or came.path[:2] == "//":
        return ""
    if came.path == request.rel_url.raw_path:
        return ""
    return f"{came.path}?{came.query}" if came.query else came.path


def _flash(done: Done) -> Done:
    """Return what came of an action as it is shown; only web addresses become links."""
    shown = done.link if urlsplit(done.link).scheme in _SAFE_SCHEMES else ""
    return replace(done, link=shown, link_text=done.link_text or done.link)


def _ms(at: int | str) -> int:
    return from_iso(at) if isinstance(at, str) else at


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
