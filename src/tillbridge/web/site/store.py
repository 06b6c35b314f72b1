"""The store itself: open or paused, by whom and why; hours, settings and taxes."""

from typing import Any

from tillbridge.core.i18n import _
from tillbridge.web.site.book import (
    Done,
    Field,
    Filled,
    Page,
    Question,
    Subject,
    Visit,
    performs,
)

_MOST_LINES = 40


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
    answer = await visit.perform(
        "store.pause",
        store=visit.params["store"],
        reason=" ".join(visit.form.get("reason", "").split())[:200],
        until=visit.form.get("until") or None,
    )
    return Done.of(answer)


async def _ask_resume(visit: Visit) -> Question:
    store = visit.params["store"]
    return Question(
        _("Guests can order from {store} again, whoever paused it.").format(store=store),
        _("Open {store}").format(store=store),
        points=(_("While the till is away the bridge keeps it closed until it is back."),),
    )


async def _ask_settings(visit: Visit) -> Question:
    plan = await visit.perform("store.plan", store=visit.params["store"])
    return Question(
        _("These settings of {store} go to the service.").format(store=visit.params["store"])
        if plan["lines"]
        else _("Nothing differs: the service has what the files say."),
        _("Send the settings"),
        points=[*plan["lines"], *plan["notes"]][:_MOST_LINES],
    )


async def _ask_tax(visit: Visit) -> Question:
    return Question(
        _("The service's taxes of {store} are read now and compared with the till's.").format(
            store=visit.params["store"]
        ),
        _("Compare the taxes"),
    )


async def _tax(visit: Visit) -> Done:
    answer = await visit.perform("store.tax", store=visit.params["store"])
    if not answer["differences"]:
        return Done(_("The taxes agree."))
    return Done(
        " ".join(answer["differences"][:5]),
        ok=False,
        fix=_("Correct them in the till or at the service, whichever is wrong."),
    )


SUBJECT = Subject(
    pages=(Page("/store", _("Store"), "store.html", _fill),),
    actions=(
        performs(
            "/stores/{store}/pause",
            _("Pause the store"),
            "store.pause",
            do=_pause,
            ask=_ask_pause,
            back="/store",
            section="/store",
        ),
        performs(
            "/stores/{store}/resume",
            _("Open the store"),
            "store.resume",
            ask=_ask_resume,
            back="/store",
            section="/store",
        ),
        performs(
            "/stores/{store}/settings",
            _("Send the settings"),
            "store.push",
            ask=_ask_settings,
            fixed={"full": False},
            back="/store",
            section="/store",
        ),
        performs(
            "/stores/{store}/tax",
            _("Compare the taxes now"),
            "store.tax",
            do=_tax,
            ask=_ask_tax,
            back="/store",
            section="/store",
        ),
    ),
)
