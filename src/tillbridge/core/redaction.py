"""Masks secrets in whatever is about to be written where people read it.

Three ways, since none is enough: by the name of a field, by value (secrets the program has learnt,
wherever they stand) and by form (bearer tokens, JWTs, `secret=...`).
"""

import base64
import re
import threading
import traceback
from collections import OrderedDict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from urllib.parse import quote

MASK = "[secret]"

_REMEMBERED = 2000  # forms of secrets; the oldest tokens go first
_SHORTEST = 6  # a shorter text would mask half of every line
_DEPTH = 12

_SECRET_KEY = re.compile(
    r"(?:^|[_\-. ])(?:secret|token|password|passwd|passphrase|authorization|signature|cookie|"
    r"credential|api_?key|private_?key|fernet|jwt|bearer)s?(?:$|[_\-. ])",
    re.IGNORECASE,
)
# Names that hold such a word and no secret.
_PLAIN_KEY = re.compile(
    r"(?:_(?:ms|s|at|in|days|count|type|field|kind|url|endpoint|expires|missing)|^token_type)$",
    re.IGNORECASE,
)
# An OAuth code is a secret; a service's error code, a reason code and a problem's code are not.
_PUBLIC_CODE = re.compile(r"[a-z][a-z_]*(?:\.[a-z_]+)+|[A-Z][A-Z_]+|\d{1,3}|[a-z]{1,12}|")

_NAMES = (
    r"(?:client_|webhook_|refresh_|access_|signing_|id_)?"
    r"(?:secret|token|password|passwd|signature|authorization|api_?key|qr_token)"
)
_SCHEMES = r"(?:Bearer|Basic|Digest|Token|ApiKey|Key|OAuth|Negotiate|Hawk)"
_FORMS = (
    re.compile(r"(?P<keep>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE),
    re.compile(r"(?P<keep>)\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
    # secret=..., "token": "...", 'signature': '...', Authorization: ...
    re.compile(rf"(?P<keep>{_NAMES}\s*=\s*[\"']?)(?!\[secret\])[^\s\"'&,;)\]}}]+", re.IGNORECASE),
    re.compile(rf"(?P<keep>{_NAMES}\\?[\"']\s*:\s*\\?[\"'])(?!\[secret\])[^\"'\\]+", re.IGNORECASE),
    re.compile(rf"(?P<keep>\bauthorization:\s*(?:{_SCHEMES}\s+)?)\S+", re.IGNORECASE),
    re.compile(r"(?P<keep>signature:\s*)[0-9a-f]{16,}", re.IGNORECASE),
    # what an OAuth redirect carries
    re.compile(r"(?P<keep>[?&](?:code|state|email)=)[^&\s\"'<>]+", re.IGNORECASE),
)

_lock = threading.Lock()
_learnt: OrderedDict[str, None] = OrderedDict()
_pattern: re.Pattern[str] | None = None


def learn_secret(text: str) -> None:
    """Mask `text` from now on wherever it stands, also as a URL or base64 would write it."""
    global _pattern  # noqa: PLW0603 -- one memory for the whole program
    if len(text) < _SHORTEST:
        return
    forms = {text, quote(text, safe=""), repr(text)[1:-1], text.replace('"', '\\"')}
    forms.add(base64.b64encode(text.encode()).decode().rstrip("="))
    with _lock:
        for form in forms:
            _learnt[form] = None
            _learnt.move_to_end(form)
        while len(_learnt) > _REMEMBERED:
            _learnt.popitem(last=False)
        longest_first = sorted(_learnt, key=len, reverse=True)
        _pattern = re.compile("|".join(map(re.escape, longest_first)))


def masked(text: str) -> str:
    """Return a text without the secrets in it."""
    if _pattern is not None:
        text = _pattern.sub(MASK, text)
    for form in _FORMS:
        text = form.sub(rf"\g<keep>{MASK}", text)
    return text


def masked_field(name: str, value: object, depth: int = 0) -> object:
    """Return what may be shown of a field: by its name, and for the rest by what it holds."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    if _SECRET_KEY.search(name) and not _PLAIN_KEY.search(name):
        return MASK
    if name == "code" and isinstance(value, str) and not _PUBLIC_CODE.fullmatch(value):
        return MASK
    return masked_value(value, depth)


def masked_value(value: object, depth: int = 0) -> object:
    """Return a value without the secrets in it; what JSON does not know becomes text."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, bytes | bytearray):
        return masked(bytes(value).decode("utf-8", "backslashreplace"))
    if depth < _DEPTH:
        if isinstance(value, Mapping):
            return {
                masked(str(key)): masked_field(str(key), part, depth + 1)
                for key, part in value.items()
            }
        if isinstance(value, list | tuple | AbstractSet):
            return [masked_value(part, depth + 1) for part in value]
    return masked(str(value))


def masked_traceback(failure: BaseException) -> str:
    """Return the failure's traceback as text, without local variables and without secrets."""
    return masked("".join(traceback.format_exception(failure)))
