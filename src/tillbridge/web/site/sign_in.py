"""Signing in and out, where passwords are configured."""

from aiohttp import web

from tillbridge.core.actor import Role, acting_as
from tillbridge.core.clock import Clock
from tillbridge.core.i18n import _
from tillbridge.operations.audit_trail import AuditTrail
from tillbridge.web.asking import form_of
from tillbridge.web.authenticator import COOKIE, Authenticator, Denied, source_of
from tillbridge.web.door import safe_return
from tillbridge.web.roles import NOBODY, Visitor
from tillbridge.web.site.book import Filled, Page, Visit
from tillbridge.web.site.frame import Frame

_MOST_CHARACTERS = 1000


async def _fill(visit: Visit) -> Filled:
    return {"next": safe_return(visit.query.get("next", "/")), "text": "", "name": ""}


PAGE = Page(
    "/login", _("Sign in"), "login.html", _fill, role=Role.ANYBODY, section="/login", live=False
)


class SignIn:
    """The two writes that need no role: `POST /login` and `POST /logout`."""

    def __init__(self, authenticator: Authenticator, trail: AuditTrail, *, clock: Clock) -> None:
        self._authenticator = authenticator
        self._trail = trail
        self._clock = clock
        self._frame = Frame((), (), asks_for_passwords=True)

    async def enter(self, request: web.Request) -> web.Response:
        """Check a name and password, and begin a session."""
        fields = await form_of(request)
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
        page = self._frame.page(PAGE, NOBODY, filled, self._clock.now_ms())
        headers = {"Retry-After": "60"} if found is not None else {}
        status = 401 if found is None else found.status
        return web.Response(status=status, text=page, content_type="text/html", headers=headers)


def _is_https(request: web.Request) -> bool:
    # Believed also of a proxy: who lies about it only loses the own cookie.
    return request.secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"
