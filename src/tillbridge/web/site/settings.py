"""Settings: sections of fields that are written into bridge.toml; users; backups; what next.

A section is a declaration in `setup/sections.toml`, shown by one form. Everything works without a
script.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tillbridge.core.actor import Role
from tillbridge.core.errors import ConfigError
from tillbridge.core.formats import clock_time, number
from tillbridge.core.i18n import N_, _, joined, ngettext
from tillbridge.model.instant import from_iso
from tillbridge.setup.sections import BY_NAME, SECTIONS
from tillbridge.web.site.book import (
    Done,
    Filled,
    Page,
    Question,
    Visit,
    link,
    performs,
    subject,
)

ROLES: Mapping[str, str] = {
    "look": N_("Viewer: sees everything, changes nothing"),
    "staff": N_("Staff: handles orders and sold-out items"),
    "technician": N_("Administrator: may do everything"),
}


async def _fill(visit: Visit) -> Filled:
    return await _filled(visit, "")


async def _fill_section(visit: Visit) -> Filled:
    name = visit.params["section"]
    if name not in BY_NAME:
        return await _filled(visit, "")
    return await _filled(visit, name)


async def _filled(visit: Visit, section: str) -> Filled:
    found = BY_NAME.get(section)
    answer = await visit.perform("config.show", section=section, store=visit.text("store"))
    return {
        "settings": answer,
        "part": found,
        "sections": SECTIONS,
        "roles": ROLES,
        "steps": steps_of(answer["next"]),
        "editing": visit.text("user"),
        "here": link("/settings/{section}", section=section) if section else "/settings",
    }


async def _change(visit: Visit) -> Done:
    section, form = visit.params["section"], dict(visit.form)
    store = form.pop("store", "")
    to = link("/settings/{section}", section=section, store=store)
    try:
        answer = await visit.perform(
            "config.change",
            section=section,
            store=store,
            digest=form.pop("digest", ""),
            restart=bool(form.pop("restart", "")),
            form={name: text for name, text in form.items() if "." in name},
        )
    except ConfigError as failure:  # the store that was edited stays in sight
        return Done(failure.text, ok=False, fix=failure.fix, wrong=failure.field, to=to)
    return replace(Done.of(answer, to=to), lines=answer["lines"])


async def _change_hours(visit: Visit) -> Done:
    form = dict(visit.form)
    store, digest = form.pop("store", ""), form.pop("digest", "")
    to = link("/settings/hours", store=store)
    try:
        answer = await visit.perform("hours.change", store=store, form=form, digest=digest)
    except ConfigError as failure:
        return Done(failure.text, ok=False, fix=failure.fix, wrong=failure.field, to=to)
    return replace(Done.of(answer, to=to), lines=answer["lines"])


async def _save_user(visit: Visit) -> Done:
    name, role, password = (visit.form.get(each, "") for each in ("name", "role", "password"))
    hashed = ""
    if password:
        from tillbridge.web.passwords import password_hash  # noqa: PLC0415 -- see there

        try:
            hashed = await asyncio.to_thread(password_hash, password)
        except ConfigError as failure:
            raise ConfigError(failure.text, fix=failure.fix, field="password") from None
    answer = await visit.perform("users.save", user=name, role=role, password_hash=hashed)
    return replace(Done.of(answer), lines=answer["lines"])


async def _ask_restore(visit: Visit) -> Question:
    held = await visit.perform("ledger.contents", backup=visit.params["backup"])
    when = clock_time(from_iso(held["at"]), visit.now_ms)
    orders, since = held["orders"], held["orders_since"]
    points = [
        _("This backup has {orders} of {stores}, and was made by version {version}.").format(
            orders=ngettext("{n} order", "{n} orders", orders).format(n=number(orders)),
            stores=joined(", ", held["stores"]) or "?",
            version=held["version"] or "?",
        ),
        ngettext(
            "Kept: {n} order that arrived since. The bridge asks the till before it writes an open "
            "order again.",
            "Kept: {n} orders that arrived since. The bridge asks the till before it writes an "
            "open order again.",
            since,
        ).format(n=number(since)),
        _(
            "Lost: what was done since then. These are pauses, items taken off sale, decisions "
            "about menu changes, and {n} entries of Activity."
        ).format(n=number(held["entries_since"])),
    ]
    if back := held["back_on_sale"]:
        points.append(
            ngettext(
                "{n} item that staff took off sale since then is on sale again.",
                "{n} items that staff took off sale since then are on sale again.",
                back,
            ).format(n=number(back))
        )
    points += [
        _("Settings and sign-ins stay as they are. The menu is sent again as a whole."),
        _("The present database is kept: you find it in the list of backups afterwards."),
        _("Orders that arrive meanwhile wait some seconds."),
    ]
    return Question(
        _("The bridge restarts with its database as it was on {when}.").format(when=when),
        _("Restore this backup"),
        points=points,
        risky=True,
    )


_PEOPLE = "/settings/people"
_HOURS = "/settings/hours"
SUBJECT = subject(
    Page("/settings", _("Settings"), "settings.html", _fill, role=Role.TECHNICIAN, live=False),
    Page(
        "/settings/{section}",
        _("Settings"),
        "settings.html",
        _fill_section,
        role=Role.TECHNICIAN,
        live=False,
    ),
    performs(
        "/settings/{section}/save",
        _("Save"),
        "config.change",
        do=_change,
        back="/settings/{section}",
    ),
    performs("/settings/hours/change", _("Save"), "hours.change", do=_change_hours, back=_HOURS),
    performs("/settings/people/user", _("Save user"), "users.save", do=_save_user, back=_PEOPLE),
    performs(
        "/settings/people/{user}/remove",
        _("Remove user"),
        "users.remove",
        ask=Question(
            _("{user} can then no longer sign in, and is signed out everywhere."),
            _("Remove {user}"),
            risky=True,
        ),
        back=_PEOPLE,
    ),
    performs("/settings/backup/now", _("Back up now"), "ledger.backup", back="/settings/backup"),
    performs(
        "/settings/backup/{backup}/restore",
        _("Restore"),
        "ledger.restore",
        ask=_ask_restore,
        back="/settings/backup",
    ),
    performs("/settings/alerts/test", _("Send a test"), "alerts.test", back="/settings/alerts"),
    home="/settings",
)


# -- what is worth doing after set-up, on the pages Set-up and Settings

# What it is good for, and where it is done.
_STEPS: Mapping[str, tuple[str, str, str]] = {
    "hours": (
        N_("Enter your opening hours"),
        N_("Guests see them, and you change them here for holidays."),
        "/settings/hours",
    ),
    "alerts": (
        N_("Set up alerts"),
        N_("Be notified when orders cannot reach the till."),
        "/settings/alerts",
    ),
    "password": (
        N_("Add users and passwords"),
        N_("Then only people with a password can open this page."),
        "/settings/people",
    ),
    "tablet": (
        N_("Open the page on the kitchen tablet"),
        N_("Serve this page to your network, then open it on the tablet."),
        "/settings/people",
    ),
    "backup": (
        N_("Back up daily"),
        N_("So that another machine can take over."),
        "/settings/backup",
    ),
    "service": (
        N_("Start the bridge with this machine"),
        N_("It then starts again after a power cut."),
        "/settings#service",
    ),
}

# Title, text, path, whether it is done.
NextStep = tuple[str, str, str, bool]


def steps_of(found: Sequence[Mapping[str, Any]]) -> list[NextStep]:
    """Return the steps of `config.show` as they are shown."""
    return [(*_STEPS[each["name"]], each["done"]) for each in found]


async def what_next(visit: Visit) -> list[NextStep]:
    """Return the steps; none for those who may not take them."""
    if visit.visitor.role < Role.TECHNICIAN:
        return []
    return steps_of((await visit.perform("config.show"))["next"])
