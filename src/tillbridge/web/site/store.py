"""The store: open or paused, hours, settings, taxes; its integration; and its community."""

from collections.abc import Mapping, Sequence
from typing import Any

from tillbridge.core.i18n import N_, _, joined
from tillbridge.model.community import FINAL
from tillbridge.status.sentences import opening_of
from tillbridge.stores.integration_plan import Kind, costs_of
from tillbridge.web.site.book import Done, Field, Filled, Page, Question, Visit, performs, subject

_MOST_LINES = 40
_PAUSES = (
    ("15m", N_("15 minutes")),
    ("30m", N_("30 minutes")),
    ("1h", N_("1 hour")),
    ("2h", N_("2 hours")),
    ("4h", N_("4 hours")),
    ("", N_("Until you reopen it")),
)
_BUSY_ORDERS = (3, 5, 8, 10, 15, 20, 30)  # in a quarter of an hour
_BUSY_UNTIL = (
    ("1h", N_("1 hour")),
    ("2h", N_("2 hours")),
    ("4h", N_("4 hours")),
    ("", N_("Until you turn it off")),
)


async def _fill(visit: Visit) -> Filled:
    status = await visit.status()
    return {
        "stores": [
            {
                "name": name,
                "service": part["service"],
                "orders": part["orders"],
                "tills": part["pos"]["adapters"],
                "standing": part.get("store", {}),
                "opening": opening_of(name, part, visit.now_ms),
            }
            for name, part in status["stores"].items()
        ]
    }


async def _ask_pause(visit: Visit) -> Question:
    store = await visit.store_name()
    return Question(
        _("Pause {store}? Guests cannot order until it reopens.").format(store=store),
        _("Pause {store}").format(store=store),
        points=(_("Orders that are already here go on."),),
        fields=(
            Field(
                "until",
                _("For how long"),
                choices=tuple((value, _(text)) for value, text in _PAUSES),
                required=False,
            ),
            Field(
                "reason",
                _("Reason"),
                required=False,
                hint=_("for your colleagues, not for guests"),
            ),
        ),
    )


async def _ask_busy(visit: Visit) -> Question:
    return Question(
        _("Turn on busy mode for {store}?").format(store=await visit.store_name()),
        _("Turn on busy mode"),
        points=(
            _("When that many orders have come in 15 minutes, the store pauses itself."),
            _("It reopens as soon as there is room for another order."),
            _(
                "The preparation time that guests see stays the same: the ordering service has "
                "no setting for it."
            ),
        ),
        fields=(
            Field(
                "orders",
                _("Orders every 15 minutes"),
                choices=tuple((str(each), str(each)) for each in _BUSY_ORDERS),
                value="10",
            ),
            Field(
                "until",
                _("For how long"),
                choices=tuple((value, _(text)) for value, text in _BUSY_UNTIL),
                required=False,
            ),
        ),
    )


async def _ask_settings(visit: Visit) -> Question:
    plan = await visit.perform("store.plan", store=visit.params["store"])
    return Question(
        _("These settings of {store} go to the service.").format(store=await visit.store_name())
        if plan["lines"]
        else _("Nothing differs: the service has what the files say."),
        _("Send the settings"),
        points=[*plan["lines"], *plan["notes"]][:_MOST_LINES],
    )


async def _tax(visit: Visit) -> Done:
    answer = await visit.perform("store.tax", store=visit.params["store"])
    if not answer["differences"]:
        return Done(_("The taxes agree."))
    return Done(
        joined(" ", answer["differences"][:5]),
        ok=False,
        fix=_("Correct them in the till or at the service, whichever is wrong."),
    )


SUBJECT = subject(
    Page("/store", _("Store"), "store.html", _fill),
    performs("/stores/{store}/pause", N_("Pause the store"), "store.pause", ask=_ask_pause),
    performs("/stores/{store}/resume", N_("Reopen now"), "store.resume"),
    performs("/stores/{store}/busy", N_("Busy mode"), "store.busy", ask=_ask_busy),
    performs("/stores/{store}/busy-off", N_("Turn off busy mode"), "store.busy_off"),
    performs(
        "/stores/{store}/settings",
        _("Send the settings"),
        "store.push",
        ask=_ask_settings,
        fixed={"full": False},
    ),
    performs("/stores/{store}/tax", _("Compare the taxes now"), "store.tax", do=_tax),
    home="/store",
)


async def _ask_apply(visit: Visit) -> Question:
    store = visit.params["store"]
    plan = await visit.perform("integration.plan", store=store)
    if plan["kind"] == Kind.NOTHING:
        text = _("Nothing differs: the service has {store} as configured.")
    else:
        text = _("The ordering service gets {store} as it is configured here.")
    return Question(
        text.format(store=await visit.store_name()),
        _("Apply the configuration"),
        points=[*plan["lines"], *plan["costs"]],
        risky=bool(plan["costs"]),
    )


async def _ask_secret(visit: Visit) -> Question:
    store = visit.params["store"]
    shown = await visit.perform("integration.show", store=store)
    costs: Sequence[str] = shown["rotation_costs"]
    name = await visit.store_name()
    return Question(
        _("{store} gets a new webhook secret.").format(store=name),
        _("Get a new secret for {store}").format(store=name),
        points=costs or (_("Deliveries signed with the old secret are accepted for a while."),),
        risky=True,
    )


INTEGRATION = subject(
    performs(
        "/stores/{store}/integration/apply",
        _("Apply the configuration"),
        "integration.apply",
        ask=_ask_apply,
    ),
    performs(
        "/stores/{store}/integration/secret",
        _("Get a new webhook secret"),
        "integration.rotate_secret",
        ask=_ask_secret,
    ),
    performs(
        "/stores/{store}/integration/anew",
        _("Reconnect the store"),
        "integration.reintegrate",
        ask=Question(
            _("{store} is connected to the ordering service anew. You need not sign in again."),
            _("Reconnect {store}"),
            points=costs_of(Kind.REINTEGRATE),
        ),
    ),
)


_ORDERS = 30


def blocks(document: Mapping[str, Any]) -> list[Filled]:
    """Return the communities of a status document as the overview shows them; often none."""
    if "communities" not in document:
        return []
    return [
        {
            "name": name,
            **part,
            "open": sum(
                count
                for status, count in part["orders"]["by_status"].items()
                if status not in FINAL
            ),
            "all": sum(part["orders"]["by_status"].values()),
            "problems": [
                each for each in document["problems"] if each["store"] == f"communities/{name}"
            ],
        }
        for name, part in document["communities"].items()
    ]


async def _fill_community(visit: Visit) -> Filled:
    name = visit.params["community"]
    # First, since it says in words that there is no such community.
    availability = await visit.perform("communities.availability", community=name)
    orders = await visit.perform("communities.orders", community=name, limit=_ORDERS)
    status = await visit.status()
    block = next((each for each in blocks(status) if each["name"] == name), None)
    return {"name": name, "block": block, "availability": availability, "orders": orders["orders"]}


COMMUNITIES = subject(
    Page("/communities/{community}", _("Community"), "community.html", _fill_community, section="/")
)
