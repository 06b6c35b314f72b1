"""What every table of the settings is built from: strict sections, and kinds of text."""

from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from tillbridge.core.i18n import _
from tillbridge.model.money import currency_like, is_currency


def _http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(_("must be a URL that begins with http:// or https://"))
    if parts.username or parts.password:
        raise ValueError(_("must not hold a user name or password"))
    if parts.query or parts.fragment:
        raise ValueError(_("must end before any ? or #"))
    try:
        parts.port  # noqa: B018 -- reading it checks it
    except ValueError:
        raise ValueError(_("must have a port from 0 to 65535, or none")) from None
    return text.rstrip("/")


def _listener(text: str) -> str:
    host, _colon, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535 or (":" in host) != (host[0] == "["):
        raise ValueError(_('must be "address:port", for example "127.0.0.1:8088"'))
    return text


def host_and_port(listener: str) -> tuple[str, int]:
    """Return the two parts of a listener; an IPv6 address without its brackets."""
    host, _colon, port = listener.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Return whether a host name or address can only be this machine."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False  # a name: 127.example.com may be anywhere


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, alike for all that name the same."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url  # no URL: alike only to itself
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"


def _time_of_day(text: str) -> str:
    hours, _colon, minutes = text.partition(":")
    if not (hours.isdigit() and minutes.isdigit() and len(hours) == len(minutes) == 2):
        raise ValueError(_('must be a time of day as "HH:MM"'))
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError(_('must be a time of day from "00:00" to "23:59"'))
    return text


def _heartbeat_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.fragment:
        raise ValueError(_("must end before any #"))
    _http_url(parts._replace(query="").geturl())
    return text


def _quiet_hours(text: str) -> str:
    begin, dash, end = text.partition("-")
    if not dash or begin == end:
        raise ValueError(_('must be two times of day as "23:00-07:00"'))
    _time_of_day(begin)
    _time_of_day(end)
    return text


# The kind of error that carries its own sentence and remedy.
INVALID = "invalid"


def invalid(text: str, fix: str) -> PydanticCustomError:
    """Return what a validator raises to say what is wrong and what to write instead."""
    return PydanticCustomError(INVALID, "{text}", {"text": text, "fix": fix})


def currency_fix(text: str) -> str:
    """Return what to write instead of a currency that is none; "" for the code of one."""
    if is_currency(text):
        return ""
    if meant := currency_like(text):
        return _('Did you mean "{code}" ({name})?').format(code=meant.code, name=meant.name)
    return _('Write the code of the currency your guests pay in, for example "USD".')


def _currency(text: str) -> str:
    if fix := currency_fix(text):
        raise invalid(_("must be a three-letter currency code (ISO 4217)."), fix)
    return text


Text = Annotated[str, StringConstraints(strip_whitespace=True)]
FilledText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
HeartbeatUrl = Annotated[str, AfterValidator(_heartbeat_url)]
QuietHours = Annotated[str, AfterValidator(_quiet_hours)]
Listener = Annotated[str, AfterValidator(_listener)]
TimeOfDay = Annotated[str, AfterValidator(_time_of_day)]
CurrencyCode = Annotated[
    str, AfterValidator(_currency), Field(json_schema_extra={"pattern": "^[A-Z]{3}$"})
]
Seconds = Annotated[float, Field(gt=0)]
Percent = Annotated[float, Field(ge=0, le=100)]


class Section(BaseModel):
    """A table of the file: unknown keys are errors, values never change and never show in errors.

    Strict: `"150"` is no number and `1` is no true, so that a mistake is reported and not guessed.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        # Only the whole file is ever validated: a validator for each table would be a waste.
        defer_build=True,
        # The text below a field is its meaning in the schema, in the reference and in errors.
        # A class without such texts does not look for them: that can take 30 ms.
        use_attribute_docstrings=True,
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: object) -> None:
        """Let a meaning of several lines be one sentence."""
        for field in cls.model_fields.values():
            if field.description:
                field.description = " ".join(field.description.split())
