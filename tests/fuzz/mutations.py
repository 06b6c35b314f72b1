"""Seeded changes of an input: of its bytes, of its lines and numbers, and of what JSON holds."""

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any

_TOKENS = (
    *(
        b"",
        b"\0",
        b"\n",
        b"\r\n",
        b'"',
        b"'",
        b",",
        b";",
        b"|",
        b"\t",
        b"\xff",
        b"\xfe\xff",
        b"\xc3",
    ),
    *(
        b"-1",
        b"0",
        b"1e309",
        b"NaN",
        b"-0",
        b"99999999999999999999",
        b"1.5",
        b"4,50",
        b"0x10",
        b"1_0",
    ),
    *(
        b"null",
        b"true",
        b"{}",
        b"[]",
        b'""',
        b'"\\ud800"',
        b"\xef\xbb\xbf",
        b"\xe2\x80\xae",
        b"\xd9\xa3",
    ),
    *(
        b"../",
        b"%00",
        b"%2e%2e",
        b"{0}",
        b"%s",
        b"\x1a",
        b"a" * 700,
        b"[" * 300,
        b"2026-02-30T25:61:00Z",
    ),
)
_VALUES: Sequence[Any] = (
    *(None, True, False, 0, -1, 1 << 63, 1 << 70, 0.5, 1e300, -0.0, "", "0", "x" * 600, "\ud800"),
    *(
        "\0",
        "\u202e",
        "٣",
        "1e5",
        "NaN",
        "2026-13-01",
        "../x",
        [],
        {},
        [[]],
        {"": None},
        [None],
        "1",
    ),
)
_NUMBER = re.compile(rb"\d+")
_LARGEST = 1 << 16


def mutated(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Return an input that differs in one to four places; `others` are what it may take from."""
    for _change in range(random.choice((1, 1, 2, 4))):
        data = random.choice(_CHANGES)(data, others, random)
    return data[:_LARGEST]


def _span(data: bytes, random: Random) -> tuple[int, int]:
    begin = random.randint(0, len(data))
    return begin, min(len(data), begin + random.choice((1, 1, 2, 4, 16, 64, 256)))


def _flip(data: bytes, _others: Sequence[bytes], random: Random) -> bytes:
    if not data:
        return b"\0"
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _cut(data: bytes, _others: Sequence[bytes], random: Random) -> bytes:
    begin, end = _span(data, random)
    return data[:begin] if random.random() < 0.2 else data[:begin] + data[end:]


def _repeat(data: bytes, _others: Sequence[bytes], random: Random) -> bytes:
    begin, end = _span(data, random)
    return data[:begin] + data[begin:end] * random.choice((2, 3, 40)) + data[end:]


def _token(data: bytes, _others: Sequence[bytes], random: Random) -> bytes:
    begin, end = _span(data, random)
    return data[:begin] + random.choice(_TOKENS) + data[random.choice((begin, end)) :]


def _splice(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    other = random.choice(others)
    begin, end = _span(other, random)
    at = random.randint(0, len(data))
    return data[:at] + other[begin:end] + data[at:]


def _number(data: bytes, _others: Sequence[bytes], random: Random) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    at = random.choice(found)
    return data[: at.start()] + random.choice(_TOKENS) + data[at.end() :]


def _lines(data: bytes, _others: Sequence[bytes], random: Random) -> bytes:
    first, newline, rest = data.partition(b"\n")
    lines = rest.split(b"\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case _:
            lines[at], lines[other] = lines[other], lines[at]
    return first + newline + b"\n".join(lines)


def _json(data: bytes, _others: Sequence[bytes], random: Random) -> bytes:
    """Change a value or a key of the JSON that begins at the first bracket."""
    begins = [at for at in (data.find(b"{"), data.find(b"[")) if at >= 0]
    if not begins:
        return data
    try:
        document = json.loads(data[min(begins) :])
    except (ValueError, RecursionError):
        return data
    places: list[tuple[Any, Any]] = []
    todo = [document]
    while todo:
        each = todo.pop()
        inner = each.items() if isinstance(each, dict) else enumerate(each)
        for key, value in inner:
            places.append((each, key))
            if isinstance(value, dict | list):
                todo.append(value)
    if not places:
        return data
    where, key = random.choice(places)
    match random.randrange(4):
        case 0:
            del where[key]
        case 1 if isinstance(where, dict):
            where[random.choice(("id", "", key + "x", "data"))] = where[key]
        case 2:
            where[key] = [where[key], where[key]]
        case _:
            where[key] = random.choice(_VALUES)
    return data[: min(begins)] + json.dumps(document).encode()


_CHANGES = (_flip, _cut, _repeat, _token, _token, _splice, _number, _lines, _json, _json)
