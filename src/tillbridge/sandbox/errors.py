"""The service's one error envelope (specification, "Errors")."""

from aiohttp import web

#: Status of each code of the specification.
SPECIFIED = {
    "request.validation": 400,
    "request.unknown_field": 400,
    "auth.invalid_client": 401,
    "auth.token_expired": 401,
    "auth.invalid_token": 401,
    "auth.invalid_grant": 400,
    "auth.consent_revoked": 403,
    "store.not_found": 404,
    "store.not_integrated": 404,
    "onboarding.merchant_exists": 409,
    "integration.already_exists": 409,
    "menu.push_not_allowed": 403,
    "menu.forward_failed": 502,
    "menu.job_not_found": 404,
    "menu.item_not_found": 404,
    "order.not_found": 404,
    "order.invalid_transition": 409,
    "rate.limited": 429,
    "internal.error": 500,
}

#: Codes for answers whose code the specification does not show.
SANDBOX_ONLY = {
    "request.not_found": 404,
    "request.forbidden": 403,
    "community.not_found": 404,
    "webhook.not_found": 404,
    "request.method_not_allowed": 405,
    "request.too_large": 413,
    "service.unavailable": 503,
    "gateway.timeout": 504,
    "control.refused": 409,
}

STATUS_OF = SPECIFIED | SANDBOX_ONLY

#: What a fault answers with when it names only a status.
CODE_FOR_STATUS = {
    400: "request.validation",
    401: "auth.token_expired",
    403: "auth.consent_revoked",
    404: "store.not_found",
    409: "order.invalid_transition",
    429: "rate.limited",
    500: "internal.error",
    502: "menu.forward_failed",
    503: "service.unavailable",
    504: "gateway.timeout",
}


class ServiceError(Exception):
    """A refusal as the caller will see it: `code`, `message`, and the status of the code."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status if status is not None else STATUS_OF[code]
        self.retry_after_s = retry_after_s


def error_response(error: ServiceError) -> web.Response:
    """The envelope, with Retry-After where there is one."""
    headers = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    body = {"error": {"code": error.code, "message": error.message}}
    return web.json_response(body, status=error.status, headers=headers)
