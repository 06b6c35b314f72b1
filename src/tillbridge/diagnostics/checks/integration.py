"""A store's integration, as the service has it: do deliveries come to where this bridge listens?"""

from tillbridge.core.errors import ConsentLost, ServiceError
from tillbridge.core.i18n import _
from tillbridge.diagnostics.result import Finding, failed, ok, skipped, warning
from tillbridge.diagnostics.subject import StoreSubject, Subject
from tillbridge.service.diagnosis import NOT_INTEGRATED
from tillbridge.service.types import Integration


async def check_integration(subject: Subject, store: StoreSubject) -> Finding:
    """Read the integration, and compare it with the configuration."""
    fix = _("Run: tillbridge connect {store}").format(store=store.name)
    if store.store_id is None:
        return failed(_("The store is not connected to the service yet."), fix)
    try:
        now = await store.client.integration(store.store_id)
    except ConsentLost:
        return skipped(_("Without the merchant's consent the integration cannot be read."), fix)
    except ServiceError as failure:
        if failure.code == NOT_INTEGRATED:
            return failed(
                _("The service has no active integration of this store: no orders arrive."), fix
            )
        return failed(
            _("The integration could not be read: {text}").format(text=failure.text),
            failure.fix or _("Look at the other checks first."),
            code=failure.code,
        )
    url = f"{subject.settings.receiver.public_url}/webhooks/{store.name}"
    return verdict(
        store.name,
        now,
        webhook_url=url,
        direction=store.settings.menu_sync_direction,
        location_id=store.settings.location_id,
    )


def verdict(
    store: str, now: Integration, *, webhook_url: str, direction: str, location_id: str
) -> Finding:
    """Return what the integration means, given what the configuration wants."""
    details = {
        "integration_id": now.integration_id,
        "status": now.status,
        "webhook_url": now.webhook_url,
        "menu_sync_direction": now.menu_sync_direction,
        "external_store_id": now.external_store_id,
    }
    fix = _("Run: tillbridge connect {store}").format(store=store)
    if now.status not in {None, "active"}:
        return failed(
            _("The integration is {status}: no orders arrive.").format(status=now.status),
            fix,
            **details,
        )
    if now.webhook_url is not None and now.webhook_url.rstrip("/") != webhook_url:
        return failed(
            _("The service delivers to {theirs}, but this bridge receives at {ours}.").format(
                theirs=now.webhook_url, ours=webhook_url
            ),
            _("If public_url is right, run: tillbridge connect {store}").format(store=store),
            **details,
        )
    if now.external_store_id not in {None, location_id}:
        return failed(
            _("The store is integrated as location {theirs}; location_id says {ours}.").format(
                theirs=now.external_store_id, ours=location_id
            ),
            _("Correct location_id, or run: tillbridge connect {store} --reintegrate").format(
                store=store
            ),
            **details,
        )
    if now.menu_sync_direction not in {None, direction}:
        return warning(
            _("Menus go {theirs} at the service; menu_sync_direction says {ours}.").format(
                theirs=now.menu_sync_direction, ours=direction
            ),
            fix,
            **details,
        )
    return ok(_("The store is integrated, and deliveries go to this bridge."), **details)
