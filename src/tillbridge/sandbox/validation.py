"""The service's errors, strict pydantic models of request bodies, and what is wrong with one.

Specification: Errors. The 400 names the path of the first field that is wrong, what was expected
there and what was sent.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, LiteralString, TypeAlias, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from aiohttp import web
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from tillbridge.sandbox.clock import parse_timestamp

_CODES = tomllib.loads(Path(__file__).with_name("codes.toml").read_text("utf-8"))
#: Status of each code of the specification, and of those for answers whose code it does not show.
SPECIFIED: Mapping[str, int] = _CODES["specified"]
SANDBOX_ONLY: Mapping[str, int] = _CODES["sandbox_only"]
STATUS_OF = {**SPECIFIED, **SANDBOX_ONLY}

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


# Bodies

#: Whatever JSON holds.
Json: TypeAlias = Any

# As an escape, or as the three bytes that json.loads lets pass; two of them may be a whole one.
_HALF_A_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")

#: What pydantic's types of errors mean here. `{value}` is what was sent.
_PROBLEMS = {
    "missing": "is required",
    "string_type": "must be a string, not {value}",
    "bool_type": "must be true or false, not {value}",
    "int_type": "must be an integer, not {value}",
    "list_type": "must be an array, not {value}",
    "dict_type": "must be an object, not {value}",
    "model_type": "must be an object, not {value}",
    "literal_error": "must be one of {expected}, not {value}",
    "greater_than_equal": "must be at least {ge}, not {value}",
    "string_pattern_mismatch": "must not be empty",
    "too_short": "must hold at least {min_length}",
    "string_too_long": "must not be longer than {max_length} characters",
}


class Body(BaseModel):
    """A request body or an object in one: exact types, no fields but its own, and no null.

    A field that is None was left out, unless `nullable` names it.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    nullable: ClassVar[frozenset[str]] = frozenset()
    known: ClassVar[frozenset[str]] = frozenset()
    not_null: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **_kwargs: object) -> None:
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        cls.known = frozenset(fields)
        optional = {name for name, field in fields.items() if not field.is_required()}
        cls.not_null = frozenset(optional - cls.nullable)

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, value: Json) -> Json:
        """Before anything else, so that a misspelt field is not reported as a missing one."""
        if not isinstance(value, dict):
            return value
        for name in value.keys() - cls.known:
            if name == "app_id":
                raise at(name, "is never sent: the token says which app is calling", unknown=True)
            if cls.model_config.get("extra") == "forbid":
                accepted = ", ".join(sorted(cls.known)) or "none"
                problem = f"is not accepted here; accepted fields: {accepted}"
                raise at(name, problem, unknown=True)
        if None in value.values():
            for name in cls.not_null & {name for name, sent in value.items() if sent is None}:
                raise at(name, "must not be null: leave the field out")
        return value

    def sent(self) -> dict[str, Any]:
        """Only the fields that were sent, as JSON has them."""
        return self.model_dump(exclude_unset=True, by_alias=True)


class Empty(Body):
    """The body of a call that takes none: nothing, or an empty object."""


AnyBody = TypeVar("AnyBody", bound=Body)
#: A model, or what chooses one by looking at the body.
Model: TypeAlias = type[AnyBody] | Callable[[Json], type[AnyBody]]


def at(name: str, problem: str, *, unknown: bool = False) -> PydanticCustomError:
    """An error of the field `name` of an object, in the words of the answer."""
    kind: LiteralString = "unknown_field" if unknown else "null_field"
    return PydanticCustomError(kind, "{problem}", {"name": name, "problem": problem})


def problem(text: str) -> PydanticCustomError:
    """An error of a validator, in the words of the answer."""
    return PydanticCustomError("problem", "{problem}", {"problem": text})


# Values


def expect(expected: str) -> WrapValidator:
    """Whatever is wrong with the value, the answer says what it must be."""

    def check(value: Json, validate: ValidatorFunctionWrapHandler) -> Json:
        try:
            return validate(value)
        except (ValidationError, TypeError, OverflowError):
            raise problem(f"must be {expected}, not {_shown(value)}") from None

    return WrapValidator(check)


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(value)
    return value


def _instant(value: Json) -> int:
    try:
        return parse_timestamp(value)
    except (TypeError, ValueError, OverflowError):
        example = "2030-01-31T18:00:00.000Z"
        expected = f"an ISO 8601 instant with a zone, such as {example}"
        raise problem(f"must be {expected}, not {_shown(value)}") from None


def _real_date(value: str) -> str:
    if date.fromisoformat(value).isoformat() != value:
        raise ValueError(value)
    return value


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, OSError):
        raise ValueError(value) from None
    return value


def _regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise problem(f"must be a regular expression: {error}") from None
    return value


_URL = "an absolute http or https URL"

OptionalText = Annotated[str, Field(max_length=10_000)]
Text = Annotated[str, Field(max_length=10_000, pattern=r"\S")]
Id = Annotated[str, Field(max_length=500, pattern=r"\S")]
Count = Annotated[int, Field(ge=0)]
Money = Annotated[int, Field(ge=0), expect("an integer in minor units of at least 0")]
Number = Annotated[int | float, Field(ge=0), expect("a number of at least 0")]
Positive = Annotated[int | float, Field(gt=0), expect("a number of more than 0")]
#: Sent as text, read as milliseconds since the epoch.
Instant = Annotated[int, BeforeValidator(_instant)]
Url = Annotated[str, AfterValidator(_http_url), expect(_URL)]
UrlOrEmpty = Annotated[
    Literal[""] | Annotated[str, AfterValidator(_http_url)], expect(f"{_URL}, or empty")
]
Email = Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$"), expect("an e-mail address")]
Date = Annotated[str, AfterValidator(_real_date), expect("a date that exists, as YYYY-MM-DD")]
Zone = Annotated[Text, AfterValidator(_zone), expect("an IANA time zone, such as Europe/Berlin")]
Regex = Annotated[str, AfterValidator(_regex)]


#: The default of a list that may be left out (pydantic copies a `[]` deeply, which takes longer).
NO_LIST: Any = Field(default_factory=list)

# From bytes to a body, or to the 400


def wrong(path: str, problem: str) -> ServiceError:
    """A validation failure found outside a model (references, duplicates, paths that disagree)."""
    return ServiceError("request.validation", f"{path}: {problem}")


def parse(raw: bytes, content_type: str, model: Model[AnyBody]) -> AnyBody:
    """The body as its model has it, or the service's 400 that says which field is wrong."""
    if content_type != "application/json":
        raise wrong("Content-Type", f"must be application/json, not {content_type}")
    try:
        body = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise wrong("body", f"is not JSON: {error}") from None
    if _HALF_A_CHARACTER.search(raw) and not _can_be_encoded(body):
        raise wrong("body", "holds half a character (a surrogate without its other half)")
    return validate(body, model)


def validate(body: Json, model: Model[AnyBody]) -> AnyBody:
    """As `parse`, of JSON that was read."""
    chosen: type[AnyBody] = model if isinstance(model, type) else model(body)
    try:
        return chosen.model_validate(body)
    except ValidationError as failure:
        raise _translated(failure.errors(include_url=False)) from None


def _translated(errors: list[ErrorDetails]) -> ServiceError:
    """The first error of several; what is missing comes before what is odd."""
    error = next((each for each in errors if each["type"] == "missing"), errors[0])
    kind, details = error["type"], error.get("ctx", {})
    path = (*error["loc"], details["name"]) if "name" in details else error["loc"]
    text = error["msg"]
    if kind in _PROBLEMS:
        values = {**details, "value": _shown(error["input"])}
        if kind == "literal_error":
            values["expected"] = details["expected"].replace(" or ", ", ").replace("'", "")
        text = _PROBLEMS[kind].format(**values)
    code = "request.unknown_field" if kind == "unknown_field" else "request.validation"
    return ServiceError(code, f"{_path(path)}: {text}")


def _path(steps: Iterable[str | int]) -> str:
    """Such as `items[3].price`."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text or "body"


def _shown(value: Json) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _can_be_encoded(body: Json) -> bool:
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
