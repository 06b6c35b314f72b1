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
from tillbridge.core.i18n import _, joined, ngettext
from tillbridge.model.instant import from_iso
from tillbridge.setup.sections import BY_NAME, SECTIONS
from tillbridge.web.site.book import (
    TEXTS,
    Done,
    Filled,
    Page,
    Question,
    Visit,
    link,
    performs,
    subject,
)

ROLES: Mapping[str, str] = TEXTS["roles"]


async def _fill(visit: Visit) -> Filled:
    found = BY_NAME.get(visit.params.get("section", ""))
    section = found.name if found else ""
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
    section, form = visit.params["section"], visit.form
    return await _saved(
        visit,
        section,
        "config.change",
        section=section,
        restart=bool(form.get("restart", "")),
        form={name: text for name, text in form.items() if "." in name},
    )


async def _change_hours(visit: Visit) -> Done:
    form = {name: text for name, text in visit.form.items() if name not in {"store", "digest"}}
    return await _saved(visit, "hours", "hours.change", form=form)


async def _saved(visit: Visit, page: str, operation: str, **given: object) -> Done:
    """Save the form of a page of settings; the store that was edited stays in sight."""
    store, digest = visit.form.get("store", ""), visit.form.get("digest", "")
    to = link("/settings/{section}", section=page, store=store)
    try:
        answer = await visit.perform(operation, store=store, digest=digest, **given)
    except ConfigError as failure:
        return Done.refused(failure, to)
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
        _fill,
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
_STEPS: Mapping[str, tuple[str, str, str]] = TEXTS["next_steps"]

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
