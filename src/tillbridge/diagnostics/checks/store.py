"""A store: does the consent hold, is it integrated, is its till there, can the menu be read?"""

from dataclasses import replace

from tillbridge.adapter import ExportUnreadable, Health, PosFailure
from tillbridge.core.errors import ConfigError, ConsentLost, ServiceError
from tillbridge.core.formats import days_left
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.problems import Found
from tillbridge.diagnostics.check import (
    Finding,
    Level,
    StoreSubject,
    Subject,
    detailed,
    failed,
    of_problem,
    ok,
    skipped,
    warning,
)
from tillbridge.pos.runner import bad_rows_detail, unreadable_detail
from tillbridge.pos.store_pos import check_duties
from tillbridge.service.answers import NOT_INTEGRATED, problem_of
from tillbridge.service.types import Integration

_DAY_MS = 86_400_000


async def check_consent(subject: Subject, store: StoreSubject) -> Finding:
    """Ask the service, with the store's token, for what it may always read."""
    if subject.no_secret:
        return failed(
            _("The app's secret cannot be read: {detail}").format(detail=subject.no_secret),
            _(
                "Put the client secret in the place that the configuration names. To see it: "
                "tillbridge config check"
            ),
        )
    tokens = await store.tokens.tokens()
    if tokens is None:
        return of_problem(Found("consent.missing"), store.name)
    failure = None
    try:
        await store.client.stores()
    except ServiceError as refusal:
        failure = refusal
    left_ms = tokens.consent_expires_at_ms - subject.clock.now_ms()
    warn_days = subject.loaded.settings.service.consent_warn_days
    days = left_ms / _DAY_MS
    found = consent_verdict(store.name, failure, days, warn_days)
    return detailed(found, days_left=round(days, 1))


def consent_verdict(
    store: str, failure: ServiceError | None, days: float, warn_days: float
) -> Finding:
    """Return what is known of the consent; `days` are left by the calendar."""
    again = _("Sign in again: tillbridge connect {store}").format(store=store)
    if isinstance(failure, ConsentLost):
        lost = problem_of(failure) or "consent.expired"
        return of_problem(Found(lost), store, code=failure.code)
    if failure is not None and failure.status in {401, 403}:
        return failed(
            _("The service refuses this bridge's token: {text}").format(text=failure.text),
            _(
                "Check that base_url and client_id belong to the same environment. If they do: "
                "{again}"
            ).format(again=again),
            code=failure.code,
        )
    if failure is not None:
        return failed(
            _("The access token could not be checked: {text}").format(text=failure.text),
            failure.fix or _("Check the internet connection."),
            code=failure.code,
        )
    if days < warn_days:  # also once none is left: the service takes the token anyway
        left = {"left": days_left(round(days * _DAY_MS))}
        return of_problem(Found("consent.ending", detail=left), store)
    return ok(
        ngettext(
            "Connected; sign-in must be renewed in {n} day.",
            "Connected; sign-in must be renewed in {n} days.",
            max(1, round(days)),
        ).format(n=max(1, round(days)))
    )


async def check_integration(subject: Subject, store: StoreSubject) -> Finding:
    """Read the integration, and compare it with the configuration."""
    fix = _("Run: tillbridge connect {store}").format(store=store.name)
    if store.store_id is None:
        return failed(_("The store is not connected to the service yet."), fix)
    try:
        now = await store.client.integration(store.store_id)
    except ConsentLost:
        return skipped(_("Not checked: the store has to be connected first."), fix)
    except ServiceError as failure:
        if failure.code == NOT_INTEGRATED:
            return failed(
                _(
                    "The ordering service has no connection from this store to this bridge: no "
                    "orders arrive."
                ),
                fix,
            )
        return failed(
            _("The store's connection could not be checked: {text}").format(text=failure.text),
            failure.fix or _("Fix the other checks first."),
            code=failure.code,
        )
    url = f"{subject.loaded.settings.receiver.public_url}/webhooks/{store.name}"
    found = integration_verdict(
        store.name,
        now,
        webhook_url=url,
        direction=store.settings.menu_sync_direction,
        location_id=store.settings.location_id,
    )
    return detailed(
        found,
        integration_id=now.integration_id,
        status=now.status,
        webhook_url=now.webhook_url,
        menu_sync_direction=now.menu_sync_direction,
        external_store_id=now.external_store_id,
    )


def integration_verdict(
    store: str, now: Integration, *, webhook_url: str, direction: str, location_id: str
) -> Finding:
    """Return what the integration means, given what the configuration wants."""
    fix = _("Run: tillbridge connect {store}").format(store=store)
    if now.status not in {None, "active"}:
        text = _("The store's connection is {status}: no orders arrive.")
        return failed(text.format(status=now.status), fix)
    if now.webhook_url is not None and now.webhook_url.rstrip("/") != webhook_url:
        text = _("The ordering service delivers to {theirs}, but this bridge receives at {ours}.")
        return failed(
            text.format(theirs=now.webhook_url, ours=webhook_url),
            _("If public_url is right, run: tillbridge connect {store}").format(store=store),
        )
    if now.external_store_id not in {None, location_id}:
        text = _("The store is connected as location {theirs}, but location_id is {ours}.")
        fix = _("Correct location_id, or run: tillbridge connect {store} --reintegrate")
        return failed(
            text.format(theirs=now.external_store_id, ours=location_id), fix.format(store=store)
        )
    if now.menu_sync_direction not in {None, direction}:
        text = _("The ordering service syncs menus {theirs}, but menu_sync_direction is {ours}.")
        return warning(text.format(theirs=now.menu_sync_direction, ours=direction), fix)
    return ok(_("The store is connected, and its orders go to this bridge."))


async def check_till(store: StoreSubject, part: str) -> Finding:
    """Probe the adapter of `part`: "pos", "orders" or "fallback"."""
    runner = store.tills.get(part)
    if runner is None:
        return failed(
            _("The adapter cannot start: {detail}").format(detail=store.tills_failure),
            _("Correct [stores.{store}.{part}]. To check it: tillbridge config check").format(
                store=store.name, part=part
            ),
        )
    if part == ("orders" if "orders" in store.tills else "pos"):
        try:
            check_duties(store.name, orders=runner.adapter, takes_orders=runner.writes_tickets)
        except ConfigError as fault:
            return failed(fault.text, fault.fix)
    health = await runner.health()
    if health.online and part == "pos" and runner.reads_availability:
        try:  # a share may be there, and its files not readable
            await runner.read_availability()
        except (ExportUnreadable, PosFailure) as failure:
            return unreadable("availability", failure)
    return verdict(runner.adapter, health, asked=runner.reports_health, part=part)


async def check_menu(store: StoreSubject) -> Finding:
    """Read the menu, as the bridge does before it pushes it."""
    runner = store.tills["pos"]
    try:
        read = await runner.read_catalogue()
    except (ExportUnreadable, PosFailure) as failure:
        return unreadable("menu", failure)
    details = {"items": len(read.items), "bad_rows": len(read.bad_rows)}
    if not read.items:
        return unreadable("menu", ExportUnreadable(_("It has no items.")))
    if wrong := bad_rows_detail(read.bad_rows):
        return of_problem(Found("export.bad_rows", "menu", wrong), **details)
    return ok(
        ngettext(
            "The menu can be read: {n} item.", "The menu can be read: {n} items.", len(read.items)
        ).format(n=len(read.items)),
        **details,
    )


def unreadable(subject: str, failure: ExportUnreadable | PosFailure) -> Finding:
    """Return that an export cannot be read, in the words of the problem."""
    if isinstance(failure, PosFailure):
        fix = failure.fix or _("Check that the till is on and connected.")
        failure = ExportUnreadable(failure.message or type(failure).__name__, fix=fix)
    return of_problem(Found("export.unreadable", subject, unreadable_detail(failure)))


def verdict(adapter: str, health: Health, *, asked: bool, part: str = "pos") -> Finding:
    """Return what a probe means."""
    details = {"adapter": adapter, "online": health.online, "reports_health": asked}
    if not health.online:
        code = "fallback.offline" if part == "fallback" else "pos.offline"
        detail = {"detail": health.detail or _("no reason given")}
        remedy = {"remedy": health.fix} if health.fix else {}
        found = of_problem(Found(code, detail={**detail, **remedy}), **details)
        return replace(found, level=Level.FAILED)
    if not asked:
        text = _("The adapter {adapter} works. It cannot see whether the till is on.")
        return ok(text.format(adapter=adapter), **details)
    return ok(_("The till answers ({adapter}).").format(adapter=adapter), **details)
