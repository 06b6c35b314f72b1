"""`tillbridge status`, from the running bridge or the ledger; and how a community is."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.answers import closure_line, problem_lines
from tillbridge.cli.commands import call, command, read_config
from tillbridge.cli.control import NotRunning, find_running
from tillbridge.cli.exits import CommandFailed
from tillbridge.cli.say import Arguments, Lines
from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _, joined, ngettext
from tillbridge.core.operation import Answer, Argument
from tillbridge.operations.communities import CommunityName

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings
    from tillbridge.status.views import (
        CommunityView,
        MemberView,
        MenuView,
        ProblemView,
        StatusDocument,
        StoreView,
    )

    class ShownCommunity(CommunityView):
        """A community with its open problems."""

        problems: list[ProblemView]


LEVELS = {"ok": 0, "warning": 1, "down": 2}
_ANSWER_S = 5.0


def show_status(status: "StatusDocument", _given: Arguments) -> Lines:
    """Say the status document."""
    verdict = status["verdict"]
    yield verdict["text"], verdict["level"]
    for problem in status["problems"]:
        yield ""
        yield from problem_lines(problem)
    for name, store in status["stores"].items():
        yield ""
        called = store["service"]["store_name"]
        yield f"{called} ({name})" if called else name
        yield from say.pairs(_store_lines(store), least=10, indent="  ")
    for name, community in status.get("communities", {}).items():
        yield ""
        yield _("community {name}").format(name=name)
        count = community["catalogue"]["items"]
        items = ngettext("{n} item", "{n} items", count).format(n=count)
        rows = [(_("catalogue"), items), (_("orders"), _by_status(community))]
        yield from say.pairs(rows, least=10, indent="  ")
    yield from _member_lines(status.get("bridges", {}))


def _member_lines(members: "Mapping[str, MemberView]") -> Lines:
    """Say who the bridges on this database are, and what each of them serves."""
    for name, member in members.items():
        yield ""
        yield _("bridge {name}").format(name=name)
        seen = _answered(member["last_seen_at"])
        if member["alive"]:
            since, stores = say.local_time(member["started_at"]), ", ".join(member["serves"])
            running = _("running since {when}, version {version}")
            yield "  " + running.format(when=since, version=member["version"])
            yield "  " + (
                _("serves {stores}").format(stores=stores) if stores else _("serves no store")
            )
        else:
            yield "  " + _("not running; {seen}").format(seen=seen)


@command("status", show_status, exit_code=lambda status: LEVELS[status["verdict"]["level"]])
def status(context: typer.Context) -> "StatusDocument":
    """Show whether orders arrive, and what to do if something is wrong.

    Works also while the bridge is stopped. Exit code: 0 everything works, 1 a warning, 2 orders
    or the menu do not work.

    Example: tillbridge status
    """
    # Without the settings' models, which cost more than all the rest of this.
    file, data_dir, configured = read_config(context)
    try:
        return current_status(file, data_dir, configured)
    except LedgerError as failure:
        # No bridge runs that could answer, and the files cannot be read: it does not get worse.
        code = LEVELS["down"]
        raise CommandFailed(failure.text, fix=failure.fix, exit_code=code) from failure


def current_status(file: Path, data_dir: Path, configured: Mapping[str, Any]) -> "StatusDocument":
    """Return the status document: of the running bridge, or from the ledger."""
    running = find_running(data_dir)
    if running is not None:
        try:
            document: StatusDocument = running.perform("status", {}, timeout_s=_ANSWER_S)
        except NotRunning:
            pass  # it has just ended, or was killed: the ledger has the rest
        else:
            return document
    from tillbridge.status.stopped import status_from_ledger

    return status_from_ledger(file, data_dir, configured)


def _store_lines(store: "StoreView") -> Iterator[tuple[str, str]]:
    from tillbridge.core.formats import waiting

    orders, menu, pos, service = store["orders"], store["menu"], store["pos"], store["service"]
    if store["store"]["status"] != "active":
        yield _("store"), closure_line(store["store"])[0]
    waits = waiting(orders["waiting"], orders["oldest_waiting_s"])
    yield _("orders"), waits or _("No orders are waiting for the till.")
    yield from _today_lines(store)
    yield _("service"), _answered(service["last_contact_at"]) or _("not contacted yet")
    online = {True: _("online"), False: _("offline"), None: _("not checked yet")}[pos["online"]]
    # Why it is offline stands with its problem, above.
    yield _("till"), joined(", ", filter(None, [online, _answered(pos["last_seen_at"])]))
    yield _("menu"), _menu(menu)
    if menu["off_sale"]:
        yield (
            _("off sale"),
            ngettext("{n} item", "{n} items", menu["off_sale"]).format(n=menu["off_sale"]),
        )
    yield _("sign-in"), _consent(service["consent"], service["consent_days_left"])


def _today_lines(store: "StoreView") -> Iterator[tuple[str, str]]:
    from tillbridge.status import sentences

    today = store["orders"]["today"]
    yield _("today"), sentences.today_line(today)
    if times := ", ".join(map(str, sentences.medians(today))):
        yield _("median"), times
    if count := sentences.cancelled(today):
        yield (
            _("cancelled"),
            _("{n} today ({causes})").format(n=count, causes=sentences.causes(today)),
        )


def _menu(menu: "MenuView") -> str:
    count, synced = menu["acknowledged_items"], say.local_time(menu["last_synced_at"])
    items = ngettext("{n} item", "{n} items", count).format(n=count)
    if menu["held"]:
        return _("{items}, an update is on hold").format(items=items)
    if not synced:
        return _("{items}, not updated yet").format(items=items)
    return _("{items}, last updated {when}").format(items=items, when=synced)


def _answered(at: str | None) -> str:
    """Return how long ago a link last worked; "" where nobody knows."""
    if at is None:
        return ""
    from tillbridge.core.formats import time_since
    from tillbridge.model.instant import from_iso

    when = time_since(from_iso(at), time.time_ns() // 1_000_000)
    return _("answered {when}").format(when=when)


def _consent(state: str, days: float | None) -> str:
    """Return how long the sign-in at the ordering service lasts."""
    from tillbridge.core.formats import span

    labels = {
        "none": _("not connected yet"),
        "ended": _("expired"),
        "withdrawn": _("access was withdrawn at the ordering service"),
    }
    left = _("valid for another {span}").format(span=span((days or 0) * 86_400))
    return labels.get(state) or left


def _by_status(community: "CommunityView") -> str:
    counts = community["orders"]["by_status"].items()
    return ", ".join(f"{count} {status}" for status, count in counts) or _("none yet")


# -- communities


def _show_community(answer: "ShownCommunity", _given: Arguments) -> Lines:
    catalogue, hook = answer["catalogue"], answer["webhook"]
    read_at = say.local_time(catalogue["read_at"]) or _("never")
    checked_at = say.local_time(hook["checked_at"]) or _("never")
    facts = (
        (_("community"), answer["community_id"]),
        (
            _("catalogue"),
            _("{items} items of {stores} stores, read {when}").format(**catalogue, when=read_at),
        ),
        (
            _("webhook"),
            _("{id}, checked {when}").format(id=hook["webhook_id"] or _("none"), when=checked_at),
        ),
        (_("orders"), _by_status(answer)),
    )
    yield from say.pairs(facts, least=10)
    for problem in answer["problems"]:
        yield problem["text"], problem["severity"]
        yield f"  {problem['fix']}"


@command("community show", _show_community)
def show_community(loaded: "LoadedSettings", name: CommunityName) -> "ShownCommunity":
    """Show a community: its catalogue, its webhook and its orders.

    Example: tillbridge community show hall
    """
    document: StatusDocument = call(loaded, "status", {})
    key = f"communities/{name}"
    problems = [each for each in document["problems"] if each["store"] == key]
    return {**document["communities"][name], "problems": problems}


def _show_hours(answer: Answer, _given: Arguments) -> Lines:
    if answer["text"]:
        yield answer["text"]
    for each in answer["stores"]:
        hours = each["hours"]
        pushed = say.local_time(each["pushed_at"])
        state = _("pushed {when}").format(when=pushed) if pushed else _("not pushed yet")
        yield f"{each['store']} ({hours['timezone']}): {state}"
        closed = _("closed")
        for day, spans in hours["weekly"].items():
            text = ", ".join(f"{span['open']}-{span['close']}" for span in spans)
            yield f"  {day:<10} {text or closed}"
        for override in hours["overrides"]:
            text = f"  {override['date']}  {closed}  {override['reason']}"
            yield text.rstrip()


@command("community hours", _show_hours)
def community_hours(
    loaded: "LoadedSettings",
    name: CommunityName,
    *,
    push: Annotated[
        bool, Argument(help=_("Send them now, whether they have changed or not."))
    ] = False,
) -> Answer:
    """Show the opening hours that the community should have, from the stores' hours files.

    The bridge sends them when a file changes, and when a dated exception begins or ends.

    Example: tillbridge community hours hall --push
    """
    operation = "communities.push_hours" if push else "communities.hours"
    answer: Answer = call(loaded, operation, {"community": name})
    return answer


# -- many bridges, seen from one place

_ON_ITS_WAY_S = 1.0
_WELL = {"ok", "warning"}


def _show(answer: Answer, _given: Arguments) -> Lines:
    for each in answer["bridges"]:
        level = each["level"]
        text = f"{level:<10}{each['bridge']:<24}{each['text']}"
        yield text, level if level in _WELL else "down"
        for problem in each["problems"]:
            yield f"{'':<34}{problem}"
    yield answer["text"]


@command(
    "fleet show",
    _show,
    exit_code=lambda answer: int(any(each["level"] not in _WELL for each in answer["bridges"])),
)
def show(
    _context: typer.Context,
    folder: Annotated[Path, Argument("FOLDER", _("The folder with the reports."))],
    *,
    keys: Annotated[
        Path, Argument("FILE", _("A file with lines NAME KEY (from tillbridge fleet key)."))
    ],
    silent_after: Annotated[
        float,
        Argument("SECONDS", _("A bridge whose report is older counts as silent."), least=1),
    ] = 300,
) -> Answer:
    """Show many bridges from their signed reports, the worst first. Needs no configuration.

    Exit code 1: a bridge is down, silent, or its report has a wrong signature.

    Example: tillbridge fleet show /srv/reports --keys keys.txt
    """
    from tillbridge.fleet import gathered, summary

    now_ms = Clock().now_ms()
    seen = gathered(folder, keys, now_ms=now_ms, silent_after_s=silent_after)
    if any(each.level == "untrusted" for each in seen):
        # A report and its signature are two files: one of them may have been on its way.
        time.sleep(_ON_ITS_WAY_S)
        seen = gathered(folder, keys, now_ms=now_ms, silent_after_s=silent_after)
    return {"bridges": [asdict(each) for each in seen], "text": summary(seen)}
