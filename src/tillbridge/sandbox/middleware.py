"""What every API call passes through: the log, the faults, the rate limit, the envelope."""

import json

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from tillbridge.sandbox.errors import ServiceError, error_response
from tillbridge.sandbox.faults import Faults, Handler, spoil
from tillbridge.sandbox.limits import RateLimit
from tillbridge.sandbox.pages import Pages
from tillbridge.sandbox.request_log import ENTRY, RequestLog

_log = structlog.get_logger("tillbridge.sandbox.api")


def api_middlewares(
    prefix: str, log: RequestLog, faults: Faults, limit: RateLimit
) -> list[Middleware]:
    """In the order in which a call meets them."""

    def below(request: web.Request) -> str:
        return request.rel_url.raw_path.removeprefix(prefix)

    @web.middleware
    async def logged(request: web.Request, handler: Handler) -> web.StreamResponse:
        entry = log.open(request.method, below(request), request.query_string)
        request[ENTRY] = entry
        response = await handler(request)
        transport = request.transport
        # A connection that was dropped has answered nothing.
        entry.status = (
            response.status if transport is not None and not transport.is_closing() else None
        )
        if entry.status is not None and entry.status >= 400:
            entry.code = _code_of(response)
        return response

    @web.middleware
    async def faulty(request: web.Request, handler: Handler) -> web.StreamResponse:
        rule = faults.pick(request.method, below(request))
        if rule is None:
            return await handler(request)
        request[ENTRY].fault = rule.rule_id
        return await spoil(rule, request, handler)

    @web.middleware
    async def enveloped(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            log.keep_body(request[ENTRY], await request.read())
            limit.admit()
            request[ENTRY].applied = True
            return await handler(request)
        except ServiceError as error:
            return error_response(error)
        except web.HTTPRedirection as redirect:
            return _plain_redirect(redirect)
        except web.HTTPException as error:
            return error_response(_translated(error, request))
        except Exception:  # noqa: BLE001 (the last line of defence: told and logged)
            _log.exception("sandbox.internal_error", method=request.method, path=below(request))
            return error_response(
                ServiceError("internal.error", "The sandbox has a defect; its log says more")
            )

    return [logged, faulty, enveloped]


def _plain_redirect(redirect: web.HTTPRedirection) -> web.Response:
    return web.Response(status=redirect.status, headers={"Location": redirect.headers["Location"]})


def _translated(error: web.HTTPException, request: web.Request) -> ServiceError:
    where = f"{request.method} {request.path}"
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return ServiceError("request.method_not_allowed", f"{where}: only {allowed}")
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return ServiceError("request.too_large", "The body is larger than this sandbox takes")
    if error.status == 404:
        return ServiceError("request.not_found", f"{where}: no such endpoint")
    return ServiceError("request.validation", error.reason, status=error.status)


def _code_of(response: web.StreamResponse) -> str | None:
    if not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        return None
    try:
        code = json.loads(response.body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(code)


# The pages and the control API


def same_origin(api_prefix: str) -> Middleware:
    """Other sites' pages must not push this one's buttons."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        reading = request.method in ("GET", "HEAD")
        if reading or origin is None or request.path.startswith(api_prefix + "/"):
            return await handler(request)
        if origin not in (f"http://{request.host}", f"https://{request.host}"):
            return error_response(
                ServiceError("request.validation", "Origin: must be this site", status=403)
            )
        return await handler(request)

    return guarded


@web.middleware
async def control_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The control API answers with the service's error envelope."""
    if not request.path.startswith("/_control/"):
        return await handler(request)
    try:
        return await handler(request)
    except ServiceError as error:
        return error_response(error)
    except web.HTTPException as error:
        return error_response(_translated(error, request))


def page_errors(pages: Pages, api_prefix: str) -> Middleware:
    """The pages say what went wrong in a page."""

    @web.middleware
    async def told(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(("/_control/", api_prefix + "/")):
            return await handler(request)
        try:
            return await handler(request)
        except ServiceError as error:
            return pages.message("That did not work", f"{error.message}.", status=error.status)
        except web.HTTPNotFound:
            return pages.message("Nothing here", "There is no such page.", status=404)

    return told
