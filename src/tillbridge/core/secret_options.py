"""Which of the values that people configure are secrets, where nothing says so. Pure."""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

# Names of variables and options that hold something secret.
SECRET_NAME = re.compile(
    r"secret|token|passw|passphrase|pwd|(?:^|[_-])pin(?:$|[_-])|key|auth|credential|cookie|dsn|"
    r"signature|session|license|licence|webhook",
    re.IGNORECASE,
)
# Options of adapters that may be shown: where something is, and how it is read.
HARMLESS_OPTION = re.compile(
    r"(?:^|_)(?:path|file|files|folder|dir|menu|orders|updates|tables|host|port|encoding|delimiter|"
    r"timeout|poll|format|mode|version|language|zone|currency|decimal|sheet|columns?|base_url)$|"
    r"_(?:s|ms|min|days|percent|bytes|count)$"
)
_SHORTEST_PART = 6
_TOKEN_LIKE = 16
_WORD = re.compile(r"[a-z_-]{1,15}")  # in an address: it says what is done there, as "services"


def secret_options(value: object, *, named: bool = False) -> Iterator[str]:
    """Yield the texts among an adapter's options that are secrets, by name or by looks."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            shown = HARMLESS_OPTION.search(str(name)) is not None
            yield from secret_options(
                each, named=not shown and (named or bool(SECRET_NAME.search(str(name))))
            )
    elif isinstance(value, list):
        for each in value:
            yield from secret_options(each, named=named)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        text = str(value)
        if named or _looks_like_one(text):
            yield from parts_of_address(text) if "://" in text else (text,)


def _looks_like_one(text: str) -> bool:
    return (
        len(text) >= _TOKEN_LIKE
        and any(map(str.isdigit, text))
        and any(map(str.isalpha, text))
        and re.fullmatch(r"[\w.~+=-]+", text) is not None
    )


def parts_of_address(url: str) -> Iterator[str]:
    """Yield an address that is a secret, and the parts that make it one."""
    yield url
    try:
        split = urlsplit(url)
        credentials = (split.username, split.password)
    except ValueError:
        return
    yield from _of_userinfo(credentials)
    parts = [unquote(part) for part in split.path.split("/")]
    parts += [value for _name, value in parse_qsl(split.query)]
    yield from (part for part in parts if len(part) >= _SHORTEST_PART and not _WORD.fullmatch(part))
    if split.scheme not in {"http", "https"} and len(split.netloc) >= _SHORTEST_PART:
        yield split.netloc  # apprise puts tokens where a host would stand


def userinfo_of(url: str) -> Iterator[str]:
    """Yield the user and password of an address, together and each."""
    try:
        split = urlsplit(url)
        credentials = (split.username, split.password)
    except ValueError:
        return
    yield from _of_userinfo(credentials)


def _of_userinfo(credentials: tuple[str | None, str | None]) -> Iterator[str]:
    given = [part for part in credentials if part]
    yield ":".join(given)
    for part in given:
        yield part
        yield unquote(part)
