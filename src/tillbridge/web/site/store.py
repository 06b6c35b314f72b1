"""The store itself: open or paused, by whom and why; hours, settings and taxes."""

from typing import Any

from tillbridge.core.actor import Role
from tillbridge.core.i18n import _
from tillbridge.web.site.book import (
    Action,
    Done,
    Field,
    Filled,
    Page,
    Question,
    Subject,
    Visit,
)

_HOUR_MS = 3_600_000
_MOST_LINES = 40
_SPANS = {"1h": _HOUR_MS, "2h": 2 * _HOUR_MS, "4h": 4 * _HOUR_MS}


async def _fill(visit: Visit) -> Filled:
    status = await visit.control.status()
    return {
        "stores": [
            {
                "name": name,
                "service": part["service"],
                "orders": part["orders"],
                "tills": part["pos"]["adapters"],
                **_of(part),
            }
            for name, part in status["stores"].items()
        ]
    }


def _of(part: dict[str, Any]) -> dict[str, Any]:
    store = part.get("store", {})
    return {"standing": store, "open": store.get("status") != "inactive"}


async def _ask_pause(visit: Visit) -> Question:
    store = visit.params["store"]
    return Question(
        _("Guests cannot order from {store} until it is opened again.").format(store=store),
        _("Pause {store}").format(store=store),
        points=(_("Orders that are here already go on."),),
        fields=(
            Field(
                "until",
                _("Until when"),
                choices=(
                    ("1h", _("for one hour")),
                    ("2h", _("for two hours")),
                    ("4h", _("for four hours")),
                    ("", _("until somebody opens it")),
                ),
                required=False,
            ),
            Field(
                "reason", _("Why"), required=False, hint=_("for your colleagues, not for guests")
            ),
        ),
        risky=True,
    )


async def _pause(visit: Visit) -> Done:
    span = _SPANS.get(visit.form.get("until", ""))
    answer = await visit.control.store.pause(
        visit.params["store"],
        by=visit.visitor.name or _("somebody at the page"),
        reason=" ".join(visit.form.get("reason", "").split())[:200],
        until_ms=None if span is None else visit.now_ms + span,
    )
    return Done.of(answer)


async def _ask_resume(visit: Visit) -> Question:
    store = visit.params["store"]
    return Question(
        _("Guests can order from {store} again, whoever paused it.").format(store=store),
        _("Open {store}").format(store=store),
        points=(_("While the till is away the bridge keeps it closed until it is back."),),
    )


async def _resume(visit: Visit) -> Done:
    by = visit.visitor.name or _("somebody at the page")
    return Done.of(await visit.control.store.resume(visit.params["store"], by=by))


async def _ask_settings(visit: Visit) -> Question:
    plan = await visit.control.store.plan(visit.params["store"], full=False)
    return Question(
        _("These settings of {store} go to the service.").format(store=visit.params["store"])
        if plan["lines"]
        else _("Nothing differs: the service has what the files say."),
        _("Send the settings"),
        points=[*plan["lines"], *plan["notes"]][:_MOST_LINES],
    )


async def _settings(visit: Visit) -> Done:
    return Done.of(await visit.control.store.push(visit.params["store"], full=False))


async def _ask_tax(visit: Visit) -> Question:
    return Question(
        _("The service's taxes of {store} are read now and compared with the till's.").format(
            store=visit.params["store"]
        ),
        _("Compare the taxes"),
    )


async def _tax(visit: Visit) -> Done:
    answer = await visit.control.store.tax(visit.params["store"])
    if not answer["differences"]:
        return Done(_("The taxes agree."))
    return Done(
        " ".join(answer["differences"][:5]),
        ok=False,
        fix=_("Correct them in the till or at the service, whichever is wrong."),
    )


def _action(path: str, title: str, audit: str, do: Any, ask: Any, role: Role) -> Action:  # noqa: ANN401 -- a row of the table below
    return Action(path, title, audit, role, do, ask, back="/store", section="/store")


SUBJECT = Subject(
    pages=(Page("/store", _("Store"), "store.html", _fill),),
    actions=(
        _action(
            "/stores/{store}/pause",
            _("Pause the store"),
            "store.pause",
            _pause,
            _ask_pause,
            Role.STAFF,
        ),
        _action(
            "/stores/{store}/resume",
            _("Open the store"),
            "store.resume",
            _resume,
            _ask_resume,
            Role.STAFF,
        ),
        _action(
            "/stores/{store}/settings",
            _("Send the settings"),
            "store.push",
            _settings,
            _ask_settings,
            Role.TECHNICIAN,
        ),
        _action(
            "/stores/{store}/tax",
            _("Compare the taxes now"),
            "store.tax",
            _tax,
            _ask_tax,
            Role.TECHNICIAN,
        ),
    ),
)
