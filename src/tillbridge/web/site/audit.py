"""Who did what: the audit trail, whether it is whole, and a file of it for a spreadsheet."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tillbridge.core.i18n import _
from tillbridge.core.spans import local_second
from tillbridge.model.instant import from_iso
from tillbridge.web.csv_export import csv_file
from tillbridge.web.site.book import File, Filled, Page, Subject, Visit

_PER_PAGE = 50
_AT_ONCE = 1000
_MOST = 50_000  # rows of the file; the ledger has the rest


async def _fill(visit: Visit) -> Filled:
    before = visit.query.get("before", "")
    number = int(before) if before.isascii() and before.isdecimal() and len(before) < 16 else None
    told = await visit.perform("audit.list", limit=_PER_PAGE, before=number)
    entries = told["entries"]
    checks = visit.query.get("check") == "1"
    return {
        "entries": [{**each, "done": _done(each), "detail": _detail(each)} for each in entries],
        "before": entries[-1]["id"] if told["more"] and entries else None,
        "first": number is None,
        "checked": await visit.perform("audit.verify") if checks else None,
    }


async def _export(visit: Visit) -> web.Response:
    entries: list[Mapping[str, Any]] = []
    before: int | None = None
    while len(entries) < _MOST:
        told = await visit.perform("audit.list", limit=_AT_ONCE, before=before)
        entries += told["entries"]
        if not told["more"] or not told["entries"]:
            break
        before = told["entries"][-1]["id"]
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
    told = [
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in entry["detail"].items()
        if name != "ok"
    ]
    return ", ".join(told)


SUBJECT = Subject(
    pages=(
        Page("/diagnostics/audit", _("Who did what"), "audit.html", _fill, section="/diagnostics"),
    ),
    files=(File("/diagnostics/audit.csv", _export),),
)
