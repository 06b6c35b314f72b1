"""Activity: who did what, in sentences, by day; as a file, and checked."""

import json
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from aiohttp import web

from tillbridge.core.formats import day_of, local_second, time_of_day
from tillbridge.core.i18n import N_, _
from tillbridge.core.problems import PROBLEMS, title_of
from tillbridge.model.instant import from_iso
from tillbridge.status.sentences import store_names
from tillbridge.web.rendering import csv_file
from tillbridge.web.site.book import TEXTS, File, Filled, Page, Visit, subject

_PER_PAGE = 50
_AT_ONCE = 1000
_MOST = 50_000  # rows of the file; the ledger has the rest

# What an entry says, by its action; one that is not here is shown as it is.
SENTENCES: Mapping[str, str] = TEXTS["activity"]
_ABOUT: Mapping[str, str] = TEXTS["activity_filters"]  # by the beginning of an action


async def _fill(visit: Visit) -> Filled:
    stores = store_names(await visit.status())
    asked = {
        "who": visit.text("who"),
        "action": visit.one_of("action", _ABOUT),
        "store": visit.one_of("store", stores),
    }
    number = visit.number("before")
    wanted = {name: value for name, value in asked.items() if value}
    page = await visit.perform("audit.list", limit=_PER_PAGE, before=number, **wanted)
    entries = [_shown(each, stores) for each in page["entries"]]
    checks = visit.query.get("check") == "1"
    return {
        "days": [(day, list(of_one)) for day, of_one in groupby(entries, lambda each: each["day"])],
        "asked": asked,
        "wanted": wanted,
        "actors": [(each, _person(each)) for each in page["actors"]],
        "about": [(value, _(label)) for value, label in _ABOUT.items()],
        "stores": stores,
        "before": entries[-1]["id"] if page["more"] and entries else None,
        "first": number is None,
        "checked": await visit.perform("audit.verify") if checks else None,
    }


def _shown(entry: Mapping[str, Any], stores: Mapping[str, str]) -> Filled:
    at = from_iso(entry["at"])
    return {
        **entry,
        "day": str(day_of(at)),
        "time": str(time_of_day(at)),
        "text": _sentence(entry, stores),
        "done": _done(entry),
        "more": _detail(entry),
    }


def _sentence(entry: Mapping[str, Any], stores: Mapping[str, str]) -> str:
    sentence = SENTENCES.get(entry["action"])
    store = str(entry["store"]).removeprefix("communities/")
    names = {
        "who": _person(entry["who"]),
        "target": entry.get("target_name") or _title(entry["target"]),
        "store": stores.get(store, store) or _("the store"),
    }
    if sentence is None:
        return _("{who}: {action}").format(who=names["who"], action=entry["action"])
    return _(sentence).format(**names)


def _title(target: str) -> str:
    """Return what people call a target: a problem by its title."""
    return title_of(target) if target in PROBLEMS else target


def _person(who: str) -> str:
    """Return who acted, as the subject of a sentence."""
    kind, _colon, name = who.partition(":")
    if kind == "bridge":
        return _("The bridge")
    if kind == "command":
        return _("{name} (command line)").format(name=name or "?")
    return name or _("Someone on the bridge's machine")


async def _give(visit: Visit) -> web.Response:
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
    Page("/diagnostics/audit", N_("Activity"), "audit.html", _fill),
    File("/diagnostics/audit.csv", _give),
    home="/diagnostics",
)
