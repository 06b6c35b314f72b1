"""Whether the database server is one that a ledger can be on, and who else uses it."""

from typing import TYPE_CHECKING

from tillbridge import ledger_schemas
from tillbridge.core.errors import BridgeError
from tillbridge.core.formats import number
from tillbridge.core.i18n import _
from tillbridge.core.worker import in_thread
from tillbridge.diagnostics.check import Finding, Subject, coded, failed, ok, skipped, warning

if TYPE_CHECKING:
    from tillbridge.ledger.server import Server

_CLOCK_S = 2.0  # a time server keeps clocks much closer


async def check_server(subject: Subject, url: str) -> Finding:
    """Connect as the bridge does, and look; nothing is changed."""
    # Only for those who have a server: its driver takes a tenth of a second.
    from tillbridge.ledger.server import look_at  # noqa: PLC0415 -- (as above)

    try:
        server = await in_thread(lambda: look_at(url))
    except BridgeError as failure:
        return failed(failure.text, failure.fix)
    return server_verdict(server, running=subject.running, writable=subject.writable)


def server_verdict(server: "Server", *, running: bool, writable: bool | None) -> Finding:
    """Return what is known of the server means."""
    from tillbridge.ledger.server import unfit  # noqa: PLC0415 -- (as above)

    details = {
        "server": server.name,
        "postgresql": server.version,
        "schema": server.schema,
        "standbys": server.standbys,
        "clock_ahead_ms": round(server.clock_ahead_s * 1000),
        "bridges": [each.name for each in server.bridges if each.is_alive],
        **server.settings,
    }
    if (refusal := unfit(server)) is not None:
        return failed(refusal.text, refusal.fix, **details)
    if writable is False:
        finding = failed(
            _("The bridge cannot save: it refuses new orders."),
            _("Look into the log of the database server, and check its disk."),
            **details,
        )
        return coded(finding, "ledger.unwritable")
    if not server.schema:
        return skipped(
            _(
                "The database {name} is empty: the bridge creates its tables at its first start."
            ).format(name=server.name),
            _("To take the present database along: tillbridge ledger copy"),
            **details,
        )
    if server.schema < ledger_schemas()[-1]:
        if running:
            return failed(
                _("The database's schema is {schema}, not {newest}.").format(
                    schema=server.schema, newest=ledger_schemas()[-1]
                ),
                _("Restart the bridge: it updates the database."),
                **details,
            )
        return ok(_("The database is intact. The next start updates it."), **details)
    if abs(server.clock_ahead_s) > _CLOCK_S:
        return warning(
            _(
                "The clocks of this machine and of the database server differ by {seconds} s."
            ).format(seconds=number(round(abs(server.clock_ahead_s), 1))),
            _("Let both be set by a time server: timedatectl set-ntp true"),
            **details,
        )
    text = _("The database {name} (PostgreSQL {version}) writes each commit to disk.")
    if server.standbys:
        text = _(
            "The database {name} (PostgreSQL {version}) writes each commit to disk, and to the "
            "standbys {standbys}."
        )
    return ok(
        text.format(name=server.name, version=server.version, standbys=server.standbys), **details
    )
