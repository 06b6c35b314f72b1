"""The link between a store and this bridge: the buttons that mend it."""

from collections.abc import Sequence

from tillbridge.core.i18n import _
from tillbridge.stores.integration_plan import Kind, costs_of
from tillbridge.web.site.book import Question, Subject, Visit, performs


async def _ask_apply(visit: Visit) -> Question:
    store = visit.params["store"]
    plan = await visit.perform("integration.plan", store=store)
    if plan["kind"] == Kind.NOTHING:
        text = _("Nothing differs any more: the service has {store} as it is configured.")
    else:
        text = _("The ordering service gets {store} as it is configured here.")
    return Question(
        text.format(store=store),
        _("Apply the configuration"),
        points=[*plan["lines"], *plan["costs"]],
        risky=bool(plan["costs"]),
    )


async def _ask_secret(visit: Visit) -> Question:
    store = visit.params["store"]
    shown = await visit.perform("integration.show", store=store)
    costs: Sequence[str] = shown["rotation_costs"]
    return Question(
        _("{store} gets a new webhook secret.").format(store=store),
        _("Get a new secret for {store}").format(store=store),
        points=costs or (_("Deliveries signed with the old secret are taken for a while."),),
        risky=True,
    )


async def _ask_anew(visit: Visit) -> Question:
    store = visit.params["store"]
    return Question(
        _("{store} is integrated anew. No new consent is needed while one lasts.").format(
            store=store
        ),
        _("Integrate {store} anew").format(store=store),
        points=costs_of(Kind.REINTEGRATE),
        risky=True,
    )


SUBJECT = Subject(
    actions=(
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
            _("Integrate it anew"),
            "integration.reintegrate",
            ask=_ask_anew,
        ),
    ),
)
