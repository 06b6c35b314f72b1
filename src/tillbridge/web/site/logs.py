"""The log: its last lines, filtered, followed or held still, and as a file."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tillbridge.core.formats import local_second
from tillbridge.core.i18n import N_, _
from tillbridge.model.instant import from_iso
from tillbridge.web.site.book import File, Filled, Page, Visit, link, subject

_LEVELS: Mapping[str, str] = {
    "": N_("everything"),
    "warning": N_("warnings and errors"),
    "error": N_("errors"),
}
_KINDS: Mapping[str, str] = {"warning": "warn", "error": "bad", "critical": "bad"}
_FEW, _MANY = 100, 500
_FILE = 20_000  # lines
_LONGEST_VALUE = 400
_LONGEST_TRACEBACK = 4000
# What a person reads past; it is shown with all details.
_NOISE = {"logger", "digest", "hash", "previous", "event_id", "delivery_id", "run", "pid", "trace"}
_NOISE_FROM = 120  # characters
_OWN_PAGE = "audit."  # has a page of its own


async def _asked(visit: Visit, stores: list[str]) -> dict[str, str]:
    return {
        "level": visit.one_of("level", _LEVELS),
        "event": visit.text("event", 60),
        "text": visit.text("q"),
        "store": visit.one_of("store", stores),
        "order": visit.text("order"),
    }


async def _fill(visit: Visit) -> Filled:
    stores = list((await visit.status())["stores"])
    asked = await _asked(visit, stores)
    many, whole = visit.query.get("many") == "1", visit.query.get("details") == "1"
    paused = visit.query.get("pause") == "1"
    most = _MANY if many else _FEW
    page = await visit.perform("diagnostics.logs", **asked, limit=most + 1)
    lines = [each for each in page["lines"] if whole or asked["event"] or not _elsewhere(each)]
    more = not many and len(page["lines"]) > most
    kept = {"q": asked["text"], **asked, "many": int(many), "details": int(whole)}
    del kept["text"]
    kept = {name: value for name, value in kept.items() if value}

    def here(**changes: object) -> str:
        merged = {**kept, "pause": int(paused), **changes}
        return link("/diagnostics/logs", **{name: each for name, each in merged.items() if each})

    return {
        "lines": [_line(each, whole=whole) for each in lines[:most]],
        "more": more,
        "kept": page["kept"],
        "asked": asked,
        "is_asked": any(asked.values()),
        "levels": [(value, _(label)) for value, label in _LEVELS.items()],
        "stores": stores,
        "whole": whole,
        "paused": paused,
        "here": here,
        "download": link("/diagnostics/logs/file", **kept),
    }


def _elsewhere(line: Mapping[str, Any]) -> bool:
    return str(line.get("event", "")).startswith(_OWN_PAGE) and line.get("level") == "info"


def _line(line: Mapping[str, Any], *, whole: bool) -> Filled:
    level = str(line.get("level", ""))
    fields = [
        (str(name), _cut(_value(value), _LONGEST_VALUE))
        for name, value in line.items()
        if name not in {"at", "level", "event", "exception"}
    ]
    return {
        "at": _second(line.get("at")),
        "level": level,
        "kind": _KINDS.get(level, ""),
        "event": str(line.get("event", "")),
        "fields": [
            each
            for each in fields
            if whole or (each[0] not in _NOISE and len(each[1]) <= _NOISE_FROM) or _KINDS.get(level)
        ],
        "exception": _cut(str(line.get("exception") or ""), _LONGEST_TRACEBACK),
    }


async def _give(visit: Visit) -> web.Response:
    """Answer with the lines that are asked for, the oldest first, as the log has them."""
    asked = await _asked(visit, list((await visit.status())["stores"]))
    page = await visit.perform("diagnostics.logs", **asked, limit=_FILE)
    text = "".join(
        json.dumps(each, ensure_ascii=False, default=str) + "\n" for each in reversed(page["lines"])
    )
    return web.Response(
        body=text.encode("utf-8", "replace"),
        content_type="application/jsonl",
        headers={"Content-Disposition": 'attachment; filename="tillbridge-log.jsonl"'},
    )


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _second(at: object) -> str:
    try:
        return str(local_second(from_iso(str(at))))
    except (ValueError, OverflowError, OSError):  # a file that somebody wrote into
        return _cut(str(at), 30)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


SUBJECT = subject(
    Page("/diagnostics/logs", N_("Log"), "logs.html", _fill),
    File("/diagnostics/logs/file", _give),
    home="/diagnostics",
)
