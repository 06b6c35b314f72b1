"""Diagnostics: every link, the log, the file for support; how orders get in; who did what."""

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
from tillbridge.core.i18n import _, ngettext
from tillbridge.model.instant import from_iso
from tillbridge.web.csv_export import csv_file
from tillbridge.web.site.book import Action, Done, File, Filled, Page, Visit, performs, subject

_LEVELS: Mapping[str, str] = {
    "": _("everything"),
    "warning": _("warnings and worse"),
    "error": _("errors"),
}
_FEW, _MANY = 100, 500
_LONGEST_VALUE = 400
_LONGEST_TRACEBACK = 4000
_WRONG = ("failed", "warning")  # levels, the worst first


async def _fill(visit: Visit) -> Filled:
    found = await visit.perform("diagnostics.latest")
    results = [] if found["report"] is None else found["report"]["results"]
    wrong = [each for each in results if each["level"] in _WRONG]
    groups: list[tuple[str, list[Mapping[str, Any]]]] = []  # what is sound, by whose it is
    for store, of_one in groupby(results, itemgetter("store")):
        title = _("The machine") if groups else _("The bridge")
        title = _("Store {name}").format(name=store) if store else title
        groups.append((title, [each for each in of_one if each["level"] not in _WRONG]))
    return {
        **found,
        "wrong": sorted(wrong, key=lambda each: _WRONG.index(each["level"])),
        "groups": [(title, sound) for title, sound in groups if sound],
    }


async def _examine(visit: Visit) -> Done:
    await visit.perform("diagnostics.begin")
    return Done(_("Every link is looked at now."))


async def _fill_logs(visit: Visit) -> Filled:
    status = await visit.status()
    stores = list(status["stores"])
    asked = {
        "level": visit.one_of("level", _LEVELS),
        "event": visit.text("event", 60),
        "text": visit.text("q"),
        "store": visit.one_of("store", stores),
        "order": visit.text("order"),
    }
    many = visit.query.get("many") == "1"
    most = _MANY if many else _FEW
    page = await visit.perform("diagnostics.logs", **asked, limit=most + 1)
    shown = page["lines"][:most]
    return {
        "lines": [_line(each) for each in shown],
        "more": not many and len(page["lines"]) > len(shown),
        "many": many,
        "kept": page["kept"],
        "asked": asked,
        "is_asked": any(asked.values()),
        "levels": list(_LEVELS.items()),
        "stores": stores,
    }


def _line(line: Mapping[str, Any]) -> Filled:
    level = str(line.get("level", ""))
    return {
        "at": _second(line.get("at")),
        "level": level,
        "kind": {"warning": "warn", "error": "bad", "critical": "bad"}.get(level, ""),
        "event": str(line.get("event", "")),
        "fields": [
            (str(name), _cut(_value(value), _LONGEST_VALUE))
            for name, value in line.items()
            if name not in {"at", "level", "event", "exception"}
        ],
        "exception": _cut(str(line.get("exception") or ""), _LONGEST_TRACEBACK),
    }


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _second(at: object) -> str:
    try:
        return str(local_second(from_iso(str(at))))
    except (ValueError, OverflowError, OSError):  # a file that somebody wrote into
        return _cut(str(at), 30)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


async def _fill_bundle(visit: Visit) -> Filled:
    return {"bundle": await visit.perform("diagnostics.bundle_state"), "sized": _size}


async def _give_bundle(visit: Visit) -> web.Response:
    bundle = await visit.perform("diagnostics.bundle_file")
    try:
        data = base64.b64decode(bundle["base64"], validate=True)
    except ValueError:
        raise BridgeError(_("The support bundle is damaged."), fix=_("Make a new one.")) from None
    return web.Response(
        body=data,
        content_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{bundle["name"]}"'},
    )


def _size(count: int) -> str:
    if count < 1000:
        return ngettext("{n} byte", "{n} bytes", count).format(n=count)
    return f"{count / 1000:.1f} kB"


async def _fill_reach(visit: Visit) -> Filled:
    reach = await visit.perform("diagnostics.reach")
    asked = visit.query.get("way", "")
    names = {each["name"] for each in reach["ways"]}
    return {"reach": reach, "open": asked if asked in names else reach["fits"]}


_PER_PAGE = 50
_AT_ONCE = 1000
_MOST = 50_000  # rows of the file; the ledger has the rest


async def _fill_audit(visit: Visit) -> Filled:
    number = visit.number("before")
    page = await visit.perform("audit.list", limit=_PER_PAGE, before=number)
    entries = page["entries"]
    checks = visit.query.get("check") == "1"
    return {
        "entries": [{**each, "done": _done(each), "detail": _detail(each)} for each in entries],
        "before": entries[-1]["id"] if page["more"] and entries else None,
        "first": number is None,
        "checked": await visit.perform("audit.verify") if checks else None,
    }


async def _export_audit(visit: Visit) -> web.Response:
    entries: list[Mapping[str, Any]] = []
    before: int | None = None
    while len(entries) < _MOST:
        page = await visit.perform("audit.list", limit=_AT_ONCE, before=before)
        entries += page["entries"]
        if not page["more"] or not page["entries"]:
            break
        before = page["entries"][-1]["id"]
    heads = (
        _("number"), _("time"), _("local time"), _("who"), _("role"), _("what"), _("store"),
        _("on"), _("done"), _("detail"), _("hash"),
    )  # fmt: skip
    rows = (
        (
            each["id"],
            each["at"],
            local_second(from_iso(each["at"])),
            each["who"],
            each["role"],
            each["action"],
            each["store"],
            each["target"],
            _("yes") if _done(each) else _("no"),
            _detail(each),
            each["hash"],
        )
        for each in entries
    )
    return csv_file("tillbridge-audit.csv", heads, rows)


def _done(entry: Mapping[str, Any]) -> bool:
    return entry["detail"].get("ok", True) is not False


def _detail(entry: Mapping[str, Any]) -> str:
    """Return what more an entry says, as `name=value`."""
    fields = [
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in entry["detail"].items()
        if name != "ok"
    ]
    return ", ".join(fields)


SUBJECT = subject(
    Page("/diagnostics", _("Diagnostics"), "diagnostics.html", _fill),
    Page("/diagnostics/logs", _("Log"), "logs.html", _fill_logs),
    Page(
        "/diagnostics/bundle",
        _("Support bundle"),
        "bundle.html",
        _fill_bundle,
        role=Role.TECHNICIAN,
    ),
    File("/diagnostics/bundle/file", _give_bundle, role=Role.TECHNICIAN),
    Action(
        "/diagnostics/examine", _("Examine every link"), "diagnostics.examine", Role.STAFF, _examine
    ),
    performs(
        "/diagnostics/bundle/make",
        _("Put a support bundle together"),
        "diagnostics.bundle",
        back="/diagnostics/bundle",
    ),
    home="/diagnostics",
)
# Of use before there is a store, too.
REACH = subject(
    Page(
        "/reach",
        _("How orders get in"),
        "reach.html",
        _fill_reach,
        live=False,  # what one copies must not change under the hand
    ),
    home="/diagnostics",
)
AUDIT = subject(
    Page("/diagnostics/audit", _("Who did what"), "audit.html", _fill_audit),
    File("/diagnostics/audit.csv", _export_audit),
    home="/diagnostics",
)
