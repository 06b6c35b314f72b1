"""The link between a store and this bridge: the buttons that mend it."""

from collections.abc import Sequence

from tillbridge.core.actor import Role
from tillbridge.core.i18n import _
from tillbridge.stores.integration_plan import Kind, costs_of
from tillbridge.web.site.book import Action, Done, Question, Subject, Visit


async def _ask_apply(visit: Visit) -> Question:
    store = visit.params["store"]
    plan = await visit.control.integration.plan(store)
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


async def _apply(visit: Visit) -> Done:
    return Done.of(await visit.control.integration.apply(visit.params["store"]))


async def _ask_secret(visit: Visit) -> Question:
    store = visit.params["store"]
    shown = await visit.control.integration.show(store)
    costs: Sequence[str] = shown["rotation_costs"]
    return Question(
        _("{store} gets a new webhook secret.").format(store=store),
        _("Get a new secret for {store}").format(store=store),
        points=costs or (_("Deliveries signed with the old secret are taken for a while."),),
        risky=True,
    )


async def _secret(visit: Visit) -> Done:
    return Done.of(await visit.control.integration.rotate_secret(visit.params["store"]))


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


async def _anew(visit: Visit) -> Done:
    return Done.of(await visit.control.integration.reintegrate(visit.params["store"]))


SUBJECT = Subject(
    actions=(
        Action(
            "/stores/{store}/integration/apply",
            _("Apply the configuration"),
            "integration.apply",
            Role.TECHNICIAN,
            _apply,
            _ask_apply,
        ),
        Action(
            "/stores/{store}/integration/secret",
            _("Get a new webhook secret"),
            "integration.rotate_secret",
            Role.TECHNICIAN,
            _secret,
            _ask_secret,
        ),
        Action(
            "/stores/{store}/integration/anew",
            _("Integrate it anew"),
            "integration.reintegrate",
            Role.TECHNICIAN,
            _anew,
            _ask_anew,
        ),
    ),
)
