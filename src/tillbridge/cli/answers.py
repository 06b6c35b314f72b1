"""What a terminal shows of an operation's answer, and what it asks before one; by operation."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tillbridge.cli import say
from tillbridge.cli.say import Arguments, Lines, Show
from tillbridge.core.formats import price
from tillbridge.core.i18n import _, joined, ngettext
from tillbridge.core.operation import Answer
from tillbridge.operations import items

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings
    from tillbridge.menu.tables import TablesPlanView
    from tillbridge.menu.views import ItemsPage, PlanView, PushesPage
    from tillbridge.operations.integration import IntegrationView
    from tillbridge.status.views import ProblemView

# What a person agrees to before an operation, nothing where nobody need be asked. It is given how
# to ask the bridge about the same store.
Effects = Callable[[Callable[[str], Answer], "LoadedSettings"], Sequence[str]]

_MOST_LINES = 50


def answer_table(of: str, empty: str, *columns: say.Column) -> Show:
    """Return what shows the list `of` an answer as a table, or that it is `empty`."""

    def show(answer: Answer, _given: Arguments) -> Lines:
        return say.rows(columns, answer[of]) if answer[of] or not empty else [empty]

    return show


def _name(item: Answer) -> str:
    return f"{item['name']} {item['variant']}".strip()


def _on_sale(item: Answer) -> str:
    return _value(item["on_sale"])


def _at(key: str, missing: str = "") -> Callable[[Answer], str]:
    return lambda each: say.local_time(each[key]) or missing


# -- plans: of the menu, of the tables, of a store's settings


def _plan(
    answer: "PlanView | TablesPlanView",
    texts: Mapping[str, str],
    *,
    nothing: bool,
    first: Sequence[str] = (),
) -> Lines:
    """Show a plan; `texts` are its heads: where it is `held`, where `nothing` is to push, else."""
    held = answer["held"]
    if held and answer["approved"]:
        yield _("You have approved this update. The bridge sends it next:")
    elif held:
        yield texts["held"]
    else:
        yield texts["nothing" if nothing else "pushed"]
    yield from _marked("!", held)
    if first:
        yield _("  The storefront has no menu yet. This is the first one:")
    yield from _marked("*", first, level="")
    lines = answer["lines"]
    yield from (f"  {line}" for line in lines[:_MOST_LINES])
    if (more := len(lines) - _MOST_LINES) > 0:
        yield "  " + _("... and {n} more (--json shows all)").format(n=more)
    bad_rows = (f"{each['place']}: {each['text']} {each['fix']}" for each in answer["bad_rows"])
    yield from _marked("?", bad_rows)


def _menu_plan(answer: "PlanView", _given: Arguments) -> Lines:
    calls = len(answer["calls"])
    pushed = ngettext(
        "This would be pushed, in {n} call:", "This would be pushed, in {n} calls:", calls
    )
    texts = {
        "held": _("This change is on hold (publish it with: tillbridge menu approve):"),
        "nothing": _("Nothing to push: the service has the menu as the till has it."),
        "pushed": pushed.format(n=calls),
    }
    return _plan(answer, texts, nothing=not calls, first=answer["first_import_lines"])


def _tables_plan(answer: "TablesPlanView", given: Arguments) -> Lines:
    count = answer["tables"]
    held = _("This update is on hold (to publish it: tillbridge tables approve {store}):")
    pushed = ngettext(
        "This floor plan of {n} table would be sent:",
        "This floor plan of {n} tables would be sent:",
        count,
    )
    texts = {
        "held": held.format(store=given["store"]),
        "nothing": _("Nothing to send: the ordering service has the till's tables."),
        "pushed": pushed.format(n=count),
    }
    return _plan(answer, texts, nothing=not answer["lines"])


def _store_plan(answer: Answer, _given: Arguments) -> Lines:
    if answer["body"]:
        yield _("This would be sent ({keys}):").format(keys=", ".join(sorted(answer["body"])))
        yield from (f"  {line}" for line in answer["lines"])
    else:
        yield _("Nothing to send: the ordering service has these settings.")
    if answer["unsaid"]:
        keys = ", ".join(answer["unsaid"])
        yield _("Removed from the files, but still set at the ordering service: {keys}.").format(
            keys=keys
        )
    for note in answer["notes"]:
        yield _("Note: {note}").format(note=note), "warning"


def _marked(mark: str, lines: Iterable[str], *, level: str = "warning") -> Lines:
    return ((f"  {mark} {line}", level) for line in lines)


# -- menu


def _pushes(answer: "PushesPage", given: Arguments) -> Lines:
    from tillbridge.menu.describe import push_columns

    currency = answer["currency"]
    return answer_table(
        "pushes",
        _("Nothing was ever pushed."),
        (_("WHEN"), _at("started_at")),
        (_("WHAT"), lambda each: push_columns(each, currency)[0]),
        (_("RESULT"), lambda each: push_columns(each, currency)[1]),
        (_("TOOK"), lambda each: push_columns(each, currency)[2]),
        (_("MESSAGE"), "message"),
    )(answer, given)


def _menu(answer: "ItemsPage", given: Arguments) -> Lines:
    currency, count = answer["currency"], answer["items_count"]
    yield from answer_table(
        "items",
        "",
        (_("ID"), "external_id"),
        (_("NAME"), _name),
        (_("PRICE"), lambda each: price(each["price"], currency)),
        (_("ON SALE"), _on_sale),
    )(answer, given)
    items_text = ngettext("{n} item", "{n} items", count).format(n=count)
    text = _("page {page} of {pages}, {n} in all")
    yield text.format(page=answer["page"], pages=answer["pages"], n=items_text)


def progress_text(phase: str) -> str:
    """Return what a menu's way to the storefront is at, in words."""
    texts = {
        "reading": _("Reading the till's menu"),
        "sending": _("Updating the storefront"),
        "importing": _("The ordering service is importing the menu"),
    }
    return str(texts.get(phase) or _("Still working"))


# -- tables


def _tables(answer: Answer, given: Arguments) -> Lines:
    yield from answer_table(
        "tables",
        no_tables(answer, given["store"]),
        (_("ID"), "external_id"),
        (_("NAME"), "name"),
        (_("SEATS"), lambda each: "" if each["seats"] is None else each["seats"]),
        (_("ZONE"), "zone"),
        (_("QR CODE"), _qr_code),
    )(answer, given)
    for reason in answer["held"] if answer["tables"] else ():
        yield _("Update on hold: {reason}").format(reason=reason)


def no_tables(answer: Answer, store: str) -> str:
    """Return why there are no tables, and what to do."""
    text = (
        _("No tables yet. Send them: tillbridge tables push {store}")
        if answer["told"]
        else _("No tables: set their file in [stores.{store}.pos] (docs/tables.md).")
    )
    return text.format(store=store)


def _qr_code(each: Answer) -> str:
    if not each["qr_url"]:
        return _("none yet")
    again = _("(print again)") if each["print_again"] else ""
    return f"{each['qr_url']}  {again}".rstrip()


# -- stores


def _store(answer: Answer, _given: Arguments) -> Lines:
    yield closure_line(answer)
    if answer["next_change_at"]:
        when = say.local_time(answer["next_change_at"])
        yield _("The schedule changes this at {when}.").format(when=when)
    settings, tax = answer["settings"], answer["tax"]
    if settings and settings["hours_today"] is not None:
        hours = ", ".join(settings["hours_today"]) or _("closed")
        yield _("Hours today: {hours}").format(hours=hours)
    if tax["checked_at"]:
        differences = tax["differences"]
        text = _("Taxes: compared at {when}").format(when=say.local_time(tax["checked_at"]))
        if differences:
            text += f"; {len(differences)} !"
        yield text, "warning" if differences else ""
        yield from _marked("!", differences)


def closure_line(answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return in one line whether the store takes orders, and its level."""
    from tillbridge.status.sentences import busy_text, why_closed

    busy = busy_text(answer)
    if answer["status"] == "active":
        return joined(" ", filter(None, (_("The store takes orders."), busy))), "ok"
    parts = [
        _("The store takes no orders."),
        why_closed(answer),
        _("Since {time}.").format(time=say.local_time(answer["since"])),
    ]
    if answer["until"]:
        parts.append(_("It reopens at {time}.").format(time=say.local_time(answer["until"])))
    return joined(" ", filter(None, [*parts, busy])), "warning"


def _store_tax(answer: Answer, _given: Arguments) -> Lines:
    config, differences = answer["config"], answer["differences"]
    if config["enabled"]:
        modes = {"inclusive": _("prices include tax"), "exclusive": _("tax is added to prices")}
        mode = modes.get(config["pricing_mode"], "?")
        text = _("The ordering service taxes by {level}; {mode}:")
        yield text.format(level=config["level"] or "?", mode=mode)
        for each in config["taxes"]:
            parts = joined(
                ", ",
                [
                    f"{agency} {rate} %" + (_(" on top of the others") if compound else "")
                    for rate, compound, agency in each["components"]
                ],
            )
            yield f"  {each['name'] or each['tax_id']}: {parts or '0 %'}"
    else:
        yield _("The ordering service adds no tax.")
    yield from ((f"! {each}", "warning") for each in differences)
    if not differences:
        yield _("The taxes of the till, the ordering service and the orders match."), "ok"


# -- integration

_FIELDS = (
    "webhook_url",
    "menu_sync_direction",
    "auto_accept_orders",
    "external_store_id",
    "notification_email",
)
_STATES = {
    "integrated": _("The store is connected to this bridge."),
    "not_integrated": _("The store is not connected."),
    "disabled": _("The ordering service has disabled the connection."),
    "pending": _("The ordering service has not activated the connection yet."),
}
_SECRETS = {
    "known": _("The bridge has had the webhook secret since {since}."),
    "unknown": _("The bridge does not have the webhook secret: it refuses orders."),
    "none": _("Without a connection there is no webhook secret."),
}
_NEXT = {
    "nothing": _("Nothing to do: the connection matches the configuration."),
    "change": _("Apply the configuration: tillbridge integration apply {store}"),
    "reintegrate": _(
        "Another location needs a new connection: tillbridge integration apply {store}"
    ),
    "rotate": _("Get a new webhook secret: tillbridge integration rotate-secret {store}"),
    "integrate": _("Reconnect the store: tillbridge integration reintegrate {store}"),
    "wait": _("Someone else has to act first. To see who: tillbridge status"),
}


def _integration(answer: "IntegrationView", given: Arguments) -> Lines:
    yield _STATES[answer["state"]]
    service: Mapping[str, object] = answer["service"] or {}
    configured: Mapping[str, object] = answer["configured"]
    yield from say.table(
        (_("FIELD"), _("AT THE SERVICE"), _("CONFIGURED")),
        ((each, _value(service.get(each)), _value(configured.get(each))) for each in _FIELDS),
    )
    yield _SECRETS[answer["secret"]].format(since=say.local_time(answer["secret_since"]))
    if answer["old_secret_until"]:
        until = say.local_time(answer["old_secret_until"])
        yield _("The previous secret stays valid until {at}.").format(at=until)
    if answer["removed_since"]:
        since = say.local_time(answer["removed_since"])
        yield _("It was disconnected from this bridge at {at}.").format(at=since)
    if answer["plan"]["kind"] != "nothing":
        yield _NEXT[answer["plan"]["kind"]].format(store=given["store"])


def _integration_plan(answer: Answer, given: Arguments) -> Lines:
    yield from (f"  {text}" for text in answer["lines"])
    yield _NEXT[answer["kind"]].format(store=given["store"])
    yield from (f"  {text}" for text in answer["costs"])


def _value(value: object) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return "-" if value is None else str(value)


def _effects_of_apply(ask: Callable[[str], Answer], _loaded: "LoadedSettings") -> Sequence[str]:
    plan = ask("integration.plan")
    new_one = plan["kind"] in {"reintegrate", "rotate"}
    return [*plan["lines"], *plan["costs"]] if new_one else ()


def _effects_of_remove(ask: Callable[[str], Answer], loaded: "LoadedSettings") -> Sequence[str]:
    from tillbridge.core.formats import span

    count = ask("integration.show")["open_orders"]
    old = span(loaded.settings.receiver.old_secret_s)
    waiting = ngettext(
        "{n} order is still open: the kitchen has it or will get it, but the bridge no longer "
        "reports on it to the service. Finish or cancel it in the merchant's dashboard.",
        "{n} orders are still open: the kitchen has them or will get them, but the bridge no "
        "longer reports on them to the service. Finish or cancel them in the merchant's "
        "dashboard.",
        count,
    ).format(n=count)
    return [
        _("No more orders arrive for this store."),
        *([waiting] if count else []),
        _("The bridge no longer sends its menu, sold-out items and tables."),
        _("Orders, menu and history stay here. Nothing changes in the till."),
        _(
            "Orders on their way are still accepted for {span}. Then the bridge forgets the "
            "webhook secret."
        ).format(span=old),
        _("The sign-in stays valid. To bring the store back: tillbridge connect"),
    ]


def _effects_of_reintegrate(
    _ask: Callable[[str], Answer], _loaded: "LoadedSettings"
) -> Sequence[str]:
    from tillbridge.stores.integration_plan import Kind, costs_of

    return costs_of(Kind.REINTEGRATE)


def _effects_of_approve(ask: Callable[[str], Answer], _loaded: "LoadedSettings") -> Sequence[str]:
    from tillbridge.menu.describe import counted

    hold = ask("menu.show")["hold"]
    if hold is None or hold["approved"]:
        return ()
    return [*hold["reasons"], *(text for _kind, text in counted(hold["counts"]))]


# Without a terminal these do not ask: scripts run them.
ASKED_ON_A_TERMINAL = frozenset({"menu.approve"})

EFFECTS: Mapping[str, Effects] = {
    "menu.approve": _effects_of_approve,
    "integration.apply": _effects_of_apply,
    "integration.rotate_secret": lambda ask, _loaded: ask("integration.show")["rotation_costs"],
    "integration.remove": _effects_of_remove,
    "integration.reintegrate": _effects_of_reintegrate,
}

# -- communities


def _own(each: Answer) -> str:
    own = each["own"]
    if own["available"]:
        return "" if own["told"] else _("on sale again (not sent yet)")
    text = _("off sale")
    if own["until"]:
        text = _("off sale until {until}").format(until=say.local_time(own["until"]))
    return text if own["told"] else text + " " + _("(not sent yet)")


def _community_orders(answer: Answer, _given: Arguments) -> Lines:
    if not answer["orders"]:
        yield _("No orders yet.")
    for order in answer["orders"]:
        head = f"{order['order_id']}  {order['order_number']}  {order['status']}"
        yield f"{head}  {say.local_time(order['received_at'])}"
        for child in order["children"]:
            ours = f"  ({child['store']}: {child['told']})" if child["store"] else ""
            where = child["store_name"] or child["store_id"]
            yield f"  {child['order_id']}  {where}  {child['status']}{ours}"


# -- problems, and alerts about them


def problem_lines(problem: "ProblemView") -> Lines:
    """Show a problem: what is wrong, what to do, since when."""
    where = f"{problem['store']}: " if problem["store"] else ""
    first, *more = f"{problem['text']}".splitlines() or [""]
    yield where + first, problem["severity"]
    yield from ((f"  {each.strip()}", problem["severity"]) for each in more)
    yield f"  {problem['fix']}"
    since = say.local_time(problem["since"])
    yield "  " + _("since {since} ({code})").format(since=since, code=problem["code"])
    if noted := problem.get("acknowledged"):
        yield "  " + _("acknowledged by {by}").format(by=noted["by"])


def _problems(answer: Answer, _given: Arguments) -> Lines:
    if not answer["problems"]:
        yield _("Everything works: no problem is open."), "ok"
    for place, problem in enumerate(answer["problems"]):
        if place:
            yield ""
        yield from problem_lines(problem)


def _problem(answer: Answer, _given: Arguments) -> Lines:
    def plain(text: str) -> str:
        return text.replace("`", "")

    yield answer["title"], answer["severity"]
    yield plain(answer["means"])
    yield ""
    yield _("What to do:")
    steps = enumerate((*answer["restaurant"], *answer["technician"]), 1)
    yield from (f"  {place}. {plain(step)}" for place, step in steps)
    yield ""
    yield _("Why: {why}").format(why=plain(answer["why"]))
    yield _("When it closes: {when}").format(when=answer["ends"])
    yield _("Code: {code}").format(code=f"{answer['code']} ({answer['severity']})")
    yield _("More: {docs}").format(docs=answer["docs"])
    for problem in answer["open"]:
        yield ""
        yield from problem_lines(problem)
    if not answer["open"]:
        yield ""
        yield _("This problem is not open now."), "ok"


def _alerts_test(answer: Answer, _given: Arguments) -> Lines:
    for each in answer["ways"]:
        yield f"{each['way']:<10}{each['text']}", "ok" if each["ok"] else "down"
        if each["fix"]:
            yield f"{'':<10}{each['fix']}"
    yield answer["text"]


SHOWN: Mapping[str, Show] = {
    "alerts.test": _alerts_test,
    "audit.list": answer_table(
        "entries",
        _("No activity yet."),
        (_("WHEN"), _at("at")),
        (_("WHO"), "who"),
        (_("WHAT"), "action"),
        (_("STORE"), "store"),
        (_("ON"), "target"),
        (_("DONE"), lambda each: _("yes") if each["detail"].get("ok", True) else _("no")),
    ),
    "communities.items": answer_table(
        "items",
        "",
        (_("ITEM"), "item_id"),
        (_("TILL"), lambda each: each["external_id"] or ""),
        (_("STORE"), lambda each: each["store_name"] or each["store_id"]),
        (_("SOLD"), lambda each: {True: _("yes"), False: _("no"), None: "?"}[each["available"]]),
        (_("THIS BRIDGE"), _own),
        (_("NAME"), "name"),
    ),
    "communities.orders": _community_orders,
    "communities.webhook_deliveries": answer_table(
        "deliveries",
        "",
        (_("WHEN"), _at("attempted_at")),
        (_("EVENT"), "event_type"),
        (_("DELIVERY"), "delivery_id"),
        (_("ANSWER"), lambda each: each["response_status"] or _("none")),
        (_("MESSAGE"), lambda each: each["response_body"] or each["error"]),
    ),
    "fleet.key": lambda answer, _given: [f"{answer['name']} {answer['key']}"],
    "integration.plan": _integration_plan,
    "integration.show": _integration,
    "items.find": answer_table(
        "items",
        _("No item matches. Try fewer letters."),
        (_("ID"), "external_id"),
        (_("NAME"), _name),
        (_("PRICE"), lambda each: f"{each['price']} {each['currency']}"),
        (_("ON SALE"), _on_sale),
    ),
    "items.off": answer_table(
        "items",
        _("No item is sold out."),
        (_("ID"), "external_id"),
        (_("NAME"), _name),
        (_("SINCE"), _at("since", "?")),
        (_("UNTIL"), _at("until", "-")),
        (_("BY"), items.taken_off_by),
        (_("FOR GUESTS"), items.reached),
    ),
    "menu.history": _pushes,
    "menu.items": _menu,
    "menu.plan": _menu_plan,
    "problems.list": _problems,
    "problems.show": _problem,
    "store.plan": _store_plan,
    "store.show": _store,
    "store.tax": _store_tax,
    "tables.list": _tables,
    "tables.plan": _tables_plan,
}
