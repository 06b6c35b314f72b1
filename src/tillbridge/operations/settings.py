"""Settings on the page: what bridge.toml says, changed in place; users; backups of the ledger."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from sqlalchemy import func, select
from sqlmodel import col

from tillbridge import __version__
from tillbridge.config.loading import load
from tillbridge.config.toml import read_file, value_at
from tillbridge.config.values import host_and_port, is_loopback
from tillbridge.config.writing import compare, may_be_replaced
from tillbridge.core.actor import Role, current_actor
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.core.started import is_service
from tillbridge.ledger.backup import back_up as copied
from tillbridge.ledger.backup import back_ups, checked, refuse_server, set_asides
from tillbridge.ledger.models import AuditEntry, OrderRow, StoreOverride
from tillbridge.ledger.recover import look_into
from tillbridge.ledger.recover import restore as put_back
from tillbridge.model.instant import to_iso
from tillbridge.operations.bridge import not_running
from tillbridge.setup import hours_form
from tillbridge.setup.proposal import restart_with_file, restore_file
from tillbridge.setup.sections import BY_NAME
from tillbridge.setup.settings_file import (
    Saved,
    SecretsOfForm,
    changes_of,
    default_of,
    field_of,
    save,
    saved_user,
    seen,
    shown,
    users_of,
    without_user,
)
from tillbridge.setup.updates import FACT, is_newer

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

    from tillbridge.config.writing import Changes
    from tillbridge.operations.bridge import Bridge
    from tillbridge.setup.proposal import SetupContext
    from tillbridge.setup.sections import SettingsSection
    from tillbridge.setup.settings_file import FormField

_Section = Annotated[str, Argument(audit="target")]
_StoreName = Annotated[str, Argument(audit="store")]


@operation("config.show", role=Role.TECHNICIAN, reads=True)
async def show(bridge: "Bridge", section: str = "", store: str = "") -> Answer:
    """Return what the page Settings shows, of one section where it is named.

    `newer_version` is the one that is announced, "" for none. `restart`: keys that the file has and
    this run does not; `unusable` why the file cannot be used. `groups` are the fields of the
    section, `digest` what they say in the file now. `next` are the steps after set-up. `users`,
    and `backups` the newest first; those that are `replaced` were the database until one was
    restored; `restored` is the last of these. `refused` is why the last restart was taken back.
    `hours` is the form of the opening hours, in their section. `on_server`: the database is on a
    server, which has its own backups.
    """
    place, found = _place(bridge), _section(section)
    _text, document = await asyncio.to_thread(place.document)
    name = _store_of(bridge, found, store)
    changed = await asyncio.to_thread(_changed, bridge)
    copies = await asyncio.to_thread(_backups, bridge)
    refused = place.restarts.refused
    return {
        "newer_version": await _newer_version(bridge),
        "file": str(place.path),
        "folder": str(bridge.ledger.data_dir),
        "writable": await asyncio.to_thread(may_be_replaced, place.path),
        "restarting": place.restarts.again,
        "refused": None if refused is None else {"text": refused.text, "fix": refused.fix},
        **changed,
        "store": name,
        "stores": await _titles(bridge),
        "groups": [] if found is None else groups_of(found, name, document),
        "digest": "" if found is None else seen(found, name, document),
        "hours": await asyncio.to_thread(_hours, bridge, document, name)
        if found is not None and found.name == "hours"
        else None,
        "users": [{"name": each, "role": role} for each, role in users_of(document).items()],
        "backups": copies,
        "on_server": bridge.settings.ledger.url is not None,
        "restored": await _restored(bridge),
        "next": await _next_steps(bridge, document, copies),
    }


@operation("config.change", role=Role.TECHNICIAN)
async def change(
    bridge: "Bridge",
    section: _Section,
    form: dict[str, str],
    digest: str,
    *,
    store: _StoreName = "",
    restart: bool = False,
) -> Answer:
    """Write what a form changes into bridge.toml; with `restart` restart the bridge with it.

    `digest` is of what the form showed. Answers `lines`, what changed in the file.
    """
    place, found = _place(bridge), _section(section)
    if found is None:
        raise ConfigError(_("There is no such page of settings."))
    name = _store_of(bridge, found, store)
    text, document = await asyncio.to_thread(place.document)
    if seen(found, name, document) != digest:
        raise ConfigError(
            _("bridge.toml was changed by hand meanwhile, so nothing was saved."),
            fix=_("Below is what it says now: make your change again."),
            field=_CONFLICT,
        )
    changes, secrets = changes_of(found, name, form, document)
    stored = SecretsOfForm(bridge.ledger.vault, secrets)
    try:
        await asyncio.to_thread(stored.store)
        answer = await _saved(place, text, changes, restart=restart, secrets=bool(secrets))
    except BridgeError:
        await asyncio.to_thread(stored.put_back)
        raise
    await asyncio.to_thread(stored.forget_removed)
    return answer


_CONFLICT = "digest"  # what is wrong where the file has changed: no field that was typed


async def _saved(
    place: "SetupContext",
    text: str,
    changes: "Changes",
    *,
    restart: bool = False,
    secrets: bool = False,
) -> Answer:
    if not (changes or secrets or restart):
        return {"ok": True, "text": _("Nothing was changed."), "lines": []}
    saved = Saved()
    if changes:
        saved = await asyncio.to_thread(save, place.path, text, changes)
    place.changes.notify()
    if restart:
        undo = partial(restore_file, place.path, saved.copy)
        restart_with_file(place, undo, connect="")
        return _answer(_("Saved. The bridge is restarting."), saved)
    return _answer(_("Saved."), saved)


def _answer(text: str, saved: "Saved") -> Answer:
    copied = _("The file as it was is kept as {copy}.")
    fix = copied.format(copy=saved.copy.name) if saved.copy else ""
    return {"ok": True, "text": text, "fix": fix, "lines": list(saved.lines)}


# -- opening hours


@operation("hours.change", role=Role.TECHNICIAN)
async def change_hours(
    bridge: "Bridge", store: _StoreName, form: dict[str, str], digest: str
) -> Answer:
    """Write the opening hours of a form into the store's hours_file; see `setup/hours_form.py`.

    Where there is none yet, it is made, and named in bridge.toml. `digest` is of what the form
    showed. Answers `lines`, what changed in the file.
    """
    place = _place(bridge)
    path, timezone = _hours_file(bridge, await asyncio.to_thread(place.document), store)
    text = "" if path is None else (await asyncio.to_thread(read_file, path))[0]
    if hours_form.seen(text) != digest:
        raise ConfigError(
            _("The hours were changed by hand meanwhile, so nothing was saved."),
            fix=_("Below is what the file says now: make your change again."),
            field=_CONFLICT,
        )
    today = datetime.fromtimestamp(bridge.clock.now_ms() / 1000, UTC).date()
    first = path is None
    if path is None:
        path = hours_form.first_file(place.base_dir, store)
    saved = await asyncio.to_thread(
        hours_form.save_hours, path, text, form, timezone=timezone, today=today
    )
    if first:
        whole, _document = await asyncio.to_thread(place.document)
        try:
            named = await asyncio.to_thread(save, place.path, whole, hours_form.naming(store, path))
        except BridgeError:
            path.unlink(missing_ok=True)
            raise
        saved = replace(saved, lines=(*saved.lines, *named.lines))
    place.changes.notify()
    return _answer(_("Saved.") if saved.lines else _("Nothing was changed."), saved)


def _hours_file(
    bridge: "Bridge", written: tuple[str, dict[str, Any]], store: str
) -> "tuple[Path | None, str | None]":
    """Return where bridge.toml says that a store's hours are, and its time zone there."""
    _text, document = written
    file = value_at(document, ("stores", store, "hours_file"))
    timezone = value_at(document, ("stores", store, "timezone"))
    return (None if file is None else bridge.base_dir / str(file)), timezone


# -- users


@operation("users.save", role=Role.TECHNICIAN)
async def save_user(
    bridge: "Bridge",
    user: Annotated[str, Argument(audit="target")],
    role: Annotated[str, Argument(audit="role")],
    password_hash: str = "",
) -> Answer:
    """Add a user of the page, or change one; without the hash (Argon2id) it stays as it is."""
    place = _place(bridge)
    text, document = await asyncio.to_thread(place.document)
    changes = saved_user(document, user.strip(), role, password_hash)
    answer = await _saved(place, text, changes)
    if changes:
        changed = (
            _("{name} can sign in now.") if password_hash else _("The role of {name} is changed.")
        )
        answer = {**answer, "text": changed.format(name=user.strip())}
    return answer


@operation("users.remove", role=Role.TECHNICIAN)
async def remove_user(bridge: "Bridge", user: Annotated[str, Argument(audit="target")]) -> Answer:
    """Take a user of the page away; who is signed in with that name is signed out."""
    place = _place(bridge)
    text, document = await asyncio.to_thread(place.document)
    answer = await _saved(place, text, without_user(document, user))
    return {**answer, "text": _("{name} can no longer sign in.").format(name=user)}


# -- backups


@operation("ledger.backup", role=Role.TECHNICIAN)
async def back_up(bridge: "Bridge") -> Answer:
    """Copy the ledger into the data folder's backups, and check the copy."""
    refuse_server(bridge.settings)
    folder, now = bridge.ledger.data_dir, bridge.clock.now_ms()
    copy = partial(copied, folder, at=now, newest=bridge.settings.bridge.keep_backups)
    saved = await asyncio.to_thread(checked, copy, fix=_("Free disk space, then try again."))
    text = _("Backed up: {file} ({kib} KiB).")
    kib = round(saved.stat().st_size / 1024)
    return {"ok": True, "text": text.format(file=saved.name, kib=kib), "path": str(saved)}


def _restorable(bridge: "Bridge") -> "list[Path]":
    """Return the backups, newest first, and the databases that one of them has replaced."""
    folder = bridge.ledger.data_dir
    return [
        *back_ups(folder),
        *(each for each in set_asides(folder) if ".replaced-" in each.name),
    ]


def _chosen(bridge: "Bridge", backup: str) -> "Path":
    refuse_server(bridge.settings)
    found = next((each for each in _restorable(bridge) if each.name == backup), None)
    if found is None:
        raise ConfigError(
            _("There is no backup {name}.").format(name=backup), fix=_("Choose another one.")
        )
    return found


def _made_at(saved: "Path") -> int:
    return round(saved.stat().st_mtime * 1000)


@operation("ledger.contents", role=Role.TECHNICIAN, reads=True)
async def contents(bridge: "Bridge", backup: str) -> Answer:
    """Return what a backup holds, and what restoring it costs.

    `orders_since` arrived after it was made and are carried over; `entries_since` are the audit
    trail's from then on, and `back_on_sale` how many items staff has taken off sale since: these
    are lost.
    """
    saved = await asyncio.to_thread(_chosen, bridge, backup)
    held, at = await asyncio.to_thread(look_into, saved), _made_at(saved)

    def since(connection: "Connection") -> dict[str, int]:
        orders = select(func.count()).where(col(OrderRow.received_at) > at)
        entries = select(func.count()).where(col(AuditEntry.at) > at)
        off_sale = select(col(StoreOverride.store), col(StoreOverride.external_id)).where(
            col(StoreOverride.by) != "order"
        )
        now_off = {(store, item) for store, item in connection.execute(off_sale)}
        return {
            "orders_since": connection.scalar(orders) or 0,
            "entries_since": connection.scalar(entries) or 0,
            "back_on_sale": len(now_off - held.off_sale),
        }

    return {
        "file": saved.name,
        "at": to_iso(at),
        "version": held.version,
        "stores": list(held.stores),
        "orders": held.orders,
        **await bridge.ledger.read(since),
    }


@operation("ledger.restore", role=Role.TECHNICIAN)
async def restore(bridge: "Bridge", backup: Annotated[str, Argument(audit="target")]) -> Answer:
    """Restart the bridge, and restore a backup while nothing uses the database.

    As `tillbridge restore` does it. If that fails, or the bridge cannot start with it, the database
    from before is put back.
    """
    place, folder, who = _place(bridge), bridge.ledger.data_dir, current_actor().who
    key = bridge.loaded.ledger_key()
    saved = await asyncio.to_thread(_chosen, bridge, backup)
    await asyncio.to_thread(look_into, saved)
    if (await asyncio.to_thread(load, place.path)).data_dir != bridge.loaded.data_dir:
        raise ConfigError(_("Restart the bridge to apply what was changed."))
    replaced: list[Path] = []

    def between() -> None:
        done = put_back(folder, saved, at=bridge.clock.now_ms(), who=who, key=key)
        replaced.extend([done.replaced] if done.replaced else ())

    def undo(_failure: BridgeError) -> None:
        for before in replaced:
            put_back(folder, before, at=bridge.clock.now_ms(), who="bridge", key=key)

    place.restarts.restart(undo, between=between)
    return {
        "ok": True,
        "text": _("The bridge restarts with the backup {name}.").format(name=backup),
    }


# -- what is shown


def _place(bridge: "Bridge") -> "SetupContext":
    if bridge.setup is None:
        raise not_running()
    return bridge.setup.context


def _section(name: str) -> "SettingsSection | None":
    if name and name not in BY_NAME:
        raise ConfigError(_("There is no such page of settings."))
    return BY_NAME.get(name)


def _store_of(bridge: "Bridge", section: "SettingsSection | None", store: str) -> str:
    if section is None or not section.each_store:
        return ""
    if store and store not in bridge.settings.stores:
        raise ConfigError(_("There is no store {store}.").format(store=store))
    return store or next(iter(bridge.settings.stores))


def _hours(bridge: "Bridge", document: dict[str, Any], store: str) -> dict[str, Any]:
    path, timezone = _hours_file(bridge, ("", document), store)
    try:
        return {**hours_form.shown(path, timezone), "unusable": ""}
    except ConfigError as failure:
        return {"file": str(path), "unusable": failure.text, "fix": failure.fix}


async def _newer_version(bridge: "Bridge") -> str:
    if bridge.settings.bridge.update_url is None:
        return ""
    found = await bridge.ledger.get_fact("", FACT)
    version = str(found["version"]) if isinstance(found, Mapping) and "version" in found else ""
    return version if is_newer(version, __version__) else ""


async def _titles(bridge: "Bridge") -> dict[str, str]:
    stores = tuple(bridge.stores.items())  # which may change meanwhile
    return {name: await store.title() or name for name, store in stores}


def _changed(bridge: "Bridge") -> dict[str, Any]:
    """Return which settings wait for a restart, and why the file cannot be used."""
    try:
        fresh = load(bridge.loaded.path).settings
    except ConfigError as failure:
        return {"restart": [], "unusable": failure.text}
    return {"restart": list(compare(bridge.loaded.settings, fresh).restart), "unusable": ""}


def groups_of(
    section: "SettingsSection", store: str, document: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the fields of a section as a form shows them, by their headings."""
    return [
        {
            "title": _(group.title),
            "fields": [_field(field_of(each, store), document) for each in group.fields],
        }
        for group in section.groups
    ]


def _field(field: "FormField", document: Mapping[str, Any]) -> dict[str, Any]:
    setting, value = field.setting, value_at(document, field.path)
    text = shown(field, value)
    choices = field.choices if text in field.choices else (*field.choices, text)
    known = setting.choices
    return {
        "name": field.name,
        "label": _(setting.label),
        "help": _(setting.help) if setting.help else "",
        "unit": _(setting.unit) if setting.unit else "",
        "kind": field.kind,
        "choices": [
            {"value": each, "text": _(known[each]) if each in known else each}
            for each in (choices if field.kind == "choice" else ())
        ],
        "value": text,
        "default": default_of(field),
        "stored": field.kind == "secret" and value is not None,
    }


def _backups(bridge: "Bridge") -> list[dict[str, Any]]:
    return [
        {
            "file": each.name,
            "bytes": each.stat().st_size,
            "at": to_iso(_made_at(each)),
            "replaced": not each.name.startswith("ledger-"),
        }
        for each in _restorable(bridge)
    ]


async def _restored(bridge: "Bridge") -> dict[str, str] | None:
    """Return which backup became the database, and when; None if none did."""
    noted = await bridge.ledger.get_fact("", "rebuilt")
    source = str(noted["set_aside"]) if noted else ""
    if not source or ".damaged-" in source:
        return None
    return {"file": source, "at": to_iso(noted["at_ms"])}


async def _next_steps(
    bridge: "Bridge", document: Mapping[str, Any], copies: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    alerts = value_at(document, ("alerts",)) or {}
    users = users_of(document)
    listen = bridge.settings.status_page.listen
    stores = (value_at(document, ("stores", each)) or {} for each in bridge.settings.stores)
    found = {
        "service": is_service(),
        "hours": all("hours_file" in each or "settings_file" in each for each in stores),
        "alerts": any(each in alerts for each in ("email", "webhook", "apprise", "heartbeat_url")),
        "password": bool(users),
        "tablet": bool(users) and not is_loopback(host_and_port(listen)[0]),
        "backup": bridge.settings.ledger.url is not None
        or bool(copies)
        or value_at(document, ("bridge", "backup_at")) is not None,
    }
    return [{"name": name, "done": done} for name, done in found.items()]
