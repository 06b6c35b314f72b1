"""Diagnostics: a check of every link, the support file, how orders get in, and the log."""

import base64
import json
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from aiohttp import web

from tillbridge.core.actor import Role
from tillbridge.core.errors import BridgeError
from tillbridge.core.formats import local_second
from tillbridge.core.i18n import N_, _
from tillbridge.model.instant import from_iso
from tillbridge.web.rendering import download
from tillbridge.web.site.book import (
    TEXTS,
    Action,
    Done,
    File,
    Filled,
    Page,
    Visit,
    link,
    performs,
    subject,
)

_WRONG = ("failed", "warning")  # levels, the worst first


async def _fill(visit: Visit) -> Filled:
    found = await visit.perform("diagnostics.latest")
    results = [] if found["report"] is None else found["report"]["results"]
    wrong = [each for each in results if each["level"] in _WRONG]
    groups: list[tuple[str, list[Mapping[str, Any]]]] = []  # what is sound, by whose it is
    for store, of_one in groupby(results, itemgetter("store")):
        title = _("This machine") if groups else _("The bridge")
        title = _("Store {name}").format(name=store) if store else title
        groups.append((title, [each for each in of_one if each["level"] not in _WRONG]))
    return {
        **found,
        "wrong": sorted(wrong, key=lambda each: _WRONG.index(each["level"])),
        "groups": [(title, sound) for title, sound in groups if sound],
    }


async def _examine(visit: Visit) -> Done:
    await visit.perform("diagnostics.begin")
    return Done(_("Diagnostics are running."))


async def _fill_bundle(visit: Visit) -> Filled:
    return {"bundle": await visit.perform("diagnostics.bundle_state")}


async def _give_bundle(visit: Visit) -> web.Response:
    bundle = await visit.perform("diagnostics.bundle_file")
    try:
        data = base64.b64decode(bundle["base64"], validate=True)
    except ValueError:
        raise BridgeError(_("The support file is damaged."), fix=_("Create a new one.")) from None
    return download(bundle["name"], data, "application/zip")


async def _fill_reach(visit: Visit) -> Filled:
    reach = await visit.perform("diagnostics.reach")
    asked = visit.query.get("way", "")
    names = {each["name"] for each in reach["ways"]}
    return {"reach": reach, "open": asked if asked in names else reach["fits"]}


SUBJECT = subject(
    Page("/diagnostics", N_("Diagnostics"), "diagnostics.html", _fill),
    Page(
        "/diagnostics/bundle",
        N_("Support file"),
        "bundle.html",
        _fill_bundle,
        role=Role.TECHNICIAN,
    ),
    File("/diagnostics/bundle/file", _give_bundle, role=Role.TECHNICIAN),
    Action(
        "/diagnostics/examine", N_("Run diagnostics"), "diagnostics.examine", Role.STAFF, _examine
    ),
    performs(
        "/diagnostics/bundle/make",
        N_("Create support file"),
        "diagnostics.bundle",
        back="/diagnostics/bundle",
    ),
    home="/diagnostics",
)
# Of use before there is a store, too.
REACH = subject(
    Page(
        "/reach",
        N_("How orders get in"),
        "reach.html",
        _fill_reach,
        live=False,  # what one copies must not change under the hand
    ),
    home="/diagnostics",
)


# -- the log: its last lines, filtered, followed or paused, and as a file

_LEVELS: Mapping[str, str] = TEXTS["log_levels"]
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


async def _fill_logs(visit: Visit) -> Filled:
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


async def _give_logs(visit: Visit) -> web.Response:
    """Answer with the lines that are asked for, the oldest first, as the log has them."""
    asked = await _asked(visit, list((await visit.status())["stores"]))
    page = await visit.perform("diagnostics.logs", **asked, limit=_FILE)
    text = "".join(
        json.dumps(each, ensure_ascii=False, default=str) + "\n" for each in reversed(page["lines"])
    )
    data = text.encode("utf-8", "replace")
    return download("tillbridge-log.jsonl", data, "application/jsonl")


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _second(at: object) -> str:
    try:
        return str(local_second(from_iso(str(at))))
    except (ValueError, OverflowError, OSError):  # a file that somebody wrote into
        return _cut(str(at), 30)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


LOGS = subject(
    Page("/diagnostics/logs", N_("Log"), "logs.html", _fill_logs),
    File("/diagnostics/logs/file", _give_logs),
    home="/diagnostics",
)
