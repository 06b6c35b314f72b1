"""All the checks of a subject, in the order in which a person reads them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tillbridge.core.i18n import _
from tillbridge.diagnostics.checks.alerts import check_nobody_told, check_telling
from tillbridge.diagnostics.checks.bridge import check_bridge, check_ports
from tillbridge.diagnostics.checks.consent import check_consent
from tillbridge.diagnostics.checks.disk import check_disk
from tillbridge.diagnostics.checks.integration import check_integration
from tillbridge.diagnostics.checks.ledger import check_ledger
from tillbridge.diagnostics.checks.machine import (
    check_secret_files,
    check_service_manager,
    check_time_sync,
    check_versions,
)
from tillbridge.diagnostics.checks.names import check_names
from tillbridge.diagnostics.checks.public import check_public
from tillbridge.diagnostics.checks.service import check_clock, check_service
from tillbridge.diagnostics.checks.till import check_menu, check_till
from tillbridge.diagnostics.checks.tls import check_tls
from tillbridge.diagnostics.checkup import Check, Checkup
from tillbridge.diagnostics.result import Finding, Level, coded, failed
from tillbridge.diagnostics.subject import StoreSubject, Subject

UNREACHABLE, PUBLIC = "service.unreachable", "public_address.unreachable"
_CALLS_S = 15.0  # a call is tried several times


def examination(subject: Subject) -> Checkup:
    """Return the checkup; nothing is looked at before it runs."""
    checks = [
        Check("bridge", _("the bridge"), partial(check_bridge, subject)),
        Check(
            "dns.service",
            _("the service's name"),
            _as(UNREACHABLE, partial(check_names, subject, "service")),
        ),
        Check(
            "tls.service",
            _("the service's certificate"),
            _as(UNREACHABLE, partial(check_tls, subject, "service")),
        ),
        Check(
            "service",
            _("the ordering service"),
            _as(UNREACHABLE, partial(check_service, subject)),
            limit_s=12,
        ),
        Check("clock", _("the clock"), partial(check_clock, subject), limit_s=15),
        Check(
            "dns.public", _("the public name"), _as(PUBLIC, partial(check_names, subject, "public"))
        ),
        Check(
            "tls.public",
            _("the public certificate"),
            _as(PUBLIC, partial(check_tls, subject, "public")),
        ),
        Check(
            "public",
            _("the public address"),
            _as(PUBLIC, partial(check_public, subject)),
            limit_s=17,
        ),
    ]
    for store in subject.stores.values():
        checks += _of_store(subject, store)
    checks += _of_telling(subject)
    checks += [
        Check("ledger", _("the ledger"), partial(check_ledger, subject), limit_s=10),
        Check("disk", _("the disk"), partial(check_disk, subject)),
        Check("ports", _("the ports"), partial(check_ports, subject)),
        Check("secret_files", _("files with secrets"), partial(check_secret_files, subject)),
        Check("time_sync", _("the time server"), check_time_sync, limit_s=5),
        Check("manager", _("the service manager"), partial(check_service_manager, subject)),
        Check("versions", _("the versions"), partial(check_versions, subject)),
    ]
    return Checkup(checks, subject.clock, partial(_open_problems, subject))


def _as(code: str, work: Callable[[], Awaitable[Finding]]) -> Callable[[], Awaitable[Finding]]:
    """Return a check whose failure is this problem: it is not told a second time."""

    async def checked() -> Finding:
        finding = await work()
        return coded(finding, code) if finding.level is Level.FAILED else finding

    return checked


def _of_telling(subject: Subject) -> list[Check]:
    if not subject.telling:
        return [Check("alerts", _("alerts"), check_nobody_told)]
    return [
        Check(
            "heartbeat" if way.name == "heartbeat" else f"alerts.{way.name}",
            _("the heartbeat")
            if way.name == "heartbeat"
            else _("alerts by {way}").format(way=way.name),
            partial(check_telling, way),
            limit_s=_CALLS_S,
        )
        for way in subject.telling
    ]


def _of_store(subject: Subject, store: StoreSubject) -> list[Check]:
    name = store.name
    parts = list(store.tills) or ["pos"]
    if subject.no_secret:
        link = [
            Check("consent", _("the consent"), partial(_no_secret, subject), name),
        ]
    else:
        link = [
            Check(
                "consent", _("the consent"), partial(check_consent, subject, store), name, _CALLS_S
            ),
            Check(
                "integration",
                _("the integration"),
                partial(check_integration, subject, store),
                name,
                _CALLS_S,
            ),
        ]
    tills = [
        Check(
            "till" if part == "pos" else f"till.{part}",
            _("the till"),
            partial(check_till, store, part),
            name,
        )
        for part in parts
    ]
    exports = [
        Check("menu", _("the menu's export"), partial(check_menu, store, part), name, _CALLS_S)
        for part in parts
        if part in store.tills and store.tills[part].reads_catalogue and part == "pos"
    ]
    return [*link, *tills, *exports]


async def _open_problems(subject: Subject) -> Sequence[Mapping[str, Any]]:
    if subject.status is None:
        return ()
    problems: Sequence[Mapping[str, Any]] = (await subject.status())["problems"]
    return problems


async def _no_secret(subject: Subject) -> Finding:
    return failed(
        _("The app's secret cannot be read: {detail}").format(detail=subject.no_secret),
        _("Put the client_secret where the configuration says; see: tillbridge config check"),
    )
