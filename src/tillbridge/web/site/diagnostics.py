"""Diagnostics: a check of every link, the file for support, and how orders get in."""

import base64
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from aiohttp import web

from tillbridge.core.actor import Role
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import N_, _
from tillbridge.web.site.book import Action, Done, File, Filled, Page, Visit, performs, subject

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
    return web.Response(
        body=data,
        content_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{bundle["name"]}"'},
    )


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
