"""`tillbridge status`: from the running bridge, or from the ledger while it is down."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import option
from tillbridge.cli.control import NotRunning, find_running
from tillbridge.cli.settings import config_path
from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _, ngettext

_LEVELS = {"ok": 0, "warning": 1, "down": 2}
_ANSWER_S = 5.0


def status(
    context: typer.Context,
    as_json: Annotated[
        bool, option("--json", _("The whole status as JSON, as at /api/status."))
    ] = False,
) -> None:
    """Show how the bridge is, and what to do about what is wrong.

    Works also while the bridge is down. Ends with 0 when all is well, 1 for a warning, 2 when
    orders or the menu stand still.

    Example: tillbridge status
    """
    # Without the settings' models, which cost more than all the rest of this.
    from tillbridge.config.loading import data_dir_of, find_file
    from tillbridge.config.toml import read_file

    path = find_file(config_path(context))
    _text, configured = read_file(path)
    try:
        told = current_status(data_dir_of(path, configured), configured)
    except LedgerError as failure:
        # Nobody runs who could tell, and what is on disk cannot be read: it does not get worse.
        say.failed(failure.text, failure.fix, _LEVELS["down"], as_json=as_json)
        raise typer.Exit(_LEVELS["down"]) from failure
    if as_json:
        say.document(told)
    else:
        _show(told)
    raise typer.Exit(_LEVELS[told["verdict"]["level"]])


def current_status(data_dir: Path, configured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status document: of the running bridge, or from the ledger."""
    running = find_running(data_dir)
    if running is not None:
        try:
            return running.ask("status", {}, timeout_s=_ANSWER_S)
        except NotRunning:
            pass  # it has ended this very moment, or was killed: the ledger tells the rest
    from tillbridge.status.stopped import status_from_ledger

    return status_from_ledger(data_dir, configured)


def _show(told: Mapping[str, Any]) -> None:
    verdict = told["verdict"]
    say.line(say.clean(verdict["text"]), level=verdict["level"])
    for problem in told["problems"]:
        say.line()
        say.problem(problem)
    for name, store in told["stores"].items():
        say.line()
        say.line(say.clean(name))
        for head, text in _lines(store):
            say.line(f"  {head:<10}{say.clean(text)}")
    for name, community in told.get("communities", {}).items():
        say.line()
        say.line(say.clean(_("community {name}").format(name=name)))
        count = community["catalogue"]["items"]
        say.line(
            f"  {_('catalogue'):<10}" + ngettext("{n} item", "{n} items", count).format(n=count)
        )
        by_status = community["orders"]["by_status"]
        text = ", ".join(f"{count} {status}" for status, count in by_status.items())
        say.line("  " + say.clean(f"{_('orders'):<10}{text or _('none yet')}"))


def _store_line(told: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the line about a store that takes no orders; none for one that does."""
    if told is None or told["status"] == "active":
        return []
    from tillbridge.cli.answers import closure_line

    return [(_("store"), closure_line(told)[0])]


def _lines(store: Mapping[str, Any]) -> list[tuple[str, str]]:
    from tillbridge.core.spans import waiting

    orders, menu, pos, service = (store[part] for part in ("orders", "menu", "pos", "service"))
    online = {True: _("online"), False: _("offline"), None: _("not known")}[pos["online"]]
    till = ": ".join(filter(None, [online, pos["detail"]]))
    days = service["consent_days_left"]
    synced = say.local_time(menu["last_synced_at"]) or _("never")
    items = menu["acknowledged_items"]
    return [
        (
            _("orders"),
            waiting(orders["waiting"], orders["oldest_waiting_s"]) or _("none waits for the till"),
        ),
        (_("service"), _answered(service["last_contact_at"]) or _("not known")),
        (_("till"), ", ".join(filter(None, [till, _answered(pos["last_seen_at"])]))),
        (
            _("menu"),
            ngettext("{n} item, last synced {when}", "{n} items, last synced {when}", items).format(
                n=items, when=synced
            )
            + (_(", a change waits for a person") if menu["held"] else ""),
        ),
        *_store_line(store.get("store")),
        (
            _("consent"),
            _consent(service["consent"], days),
        ),
    ]


def _answered(at: str | None) -> str:
    """Return how long ago a link last worked; "" where nobody knows."""
    if at is None:
        return ""
    from tillbridge.core.spans import time_since
    from tillbridge.model.instant import from_iso

    when = time_since(from_iso(at), time.time_ns() // 1_000_000)
    return _("answered {when}").format(when=when)


def _consent(stands: str, days: float | None) -> str:
    """Return how the merchant's consent stands."""
    from tillbridge.core.spans import span

    words = {"none": _("none"), "ended": _("ended"), "withdrawn": _("withdrawn by the merchant")}
    return words.get(stands) or _("{span} left").format(span=span((days or 0) * 86_400))
