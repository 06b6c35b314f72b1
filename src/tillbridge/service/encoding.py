"""Large bodies as JSON, without holding the interpreter for long.

`json.dumps` of a whole menu keeps the interpreter's lock until it is done, so that even in a thread
it would stop the event loop for a tenth of a second. Here each item is encoded by itself, and the
loop gets its turn between two of them.
"""

import asyncio
import json
from collections.abc import Mapping
from decimal import Decimal

_DEPTH = 4  # body, menus, menu, items: what lies deeper is small


def encode_small(body: object) -> bytes:
    """Return a small body as compact JSON (UTF-8)."""
    return _dumps(body).encode()


async def encode(body: object) -> bytes:
    """Return a body of any size as compact JSON (UTF-8), encoded in a thread."""
    return await asyncio.to_thread(lambda: "".join(_pieces(body, _DEPTH)).encode())


def _pieces(value: object, depth: int) -> list[str]:
    if depth > 0 and isinstance(value, Mapping):
        pieces: list[str] = []
        for name, each in value.items():
            pieces += (",", _dumps(str(name)), ":", *_pieces(each, depth - 1))
        return ["{", *pieces[1:], "}"]
    if depth > 0 and isinstance(value, list | tuple):
        pieces = []
        for each in value:
            pieces += (",", *_pieces(each, depth - 1))
        return ["[", *pieces[1:], "]"]
    return [_dumps(value)]


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):  # a tax rate; money is whole numbers
        return int(value) if value == value.to_integral_value() else float(value)
    msg = f"{type(value).__name__} is not JSON"
    raise TypeError(msg)
