"""The overview: in five seconds, what is wrong and what to do; and the buttons that do it."""

from tillbridge.core.actor import Role
from tillbridge.core.i18n import _
from tillbridge.core.problems import PROBLEMS
from tillbridge.web.site.book import (
    Action,
    Done,
    Filled,
    Page,
    Question,
    Subject,
    Visit,
    performs,
)
from tillbridge.web.site.communities import blocks
from tillbridge.web.site.remedies import page_of, remedies_of
from tillbridge.web.site.strip import drawn


async def _fill(visit: Visit) -> Filled:
    told = await visit.control.overview()
    problems = [
        {
            **each,
            "remedies": remedies_of(each),
            "words": PROBLEMS[each["code"]].fix_on_page,
            "page": page_of(each),
            "ends_when_seen": PROBLEMS[each["code"]].ends_when_seen,
        }
        for each in told["problems"]
    ]
    return {
        **told,
        "problems": problems,
        "strip": drawn(told["day"]),
        "community_blocks": blocks(told),
    }


async def _ask_connect(visit: Visit) -> Question:
    store = visit.params["store"]
    return Question(
        _(
            "The merchant of {store} is asked to allow this bridge to work for the store. You get "
            "the address of the service's page; open it in a browser on the bridge's own machine."
        ).format(store=store),
        _("Connect {store}").format(store=store),
    )


async def _connect(visit: Visit) -> Done:
    store = visit.params["store"]
    begun = await visit.control.connect(store, reintegrate=False)
    return Done(
        _("Now the merchant of {store} consents at the ordering service.").format(store=store),
        link=str(begun["url"]),
        link_text=_("Open the service's page"),
    )


SUBJECT = Subject(
    pages=(Page("/", _("Overview"), "overview.html", _fill),),
    actions=(
        performs("/problems/{code}/ack", _("I see to it"), "problems.acknowledge"),
        Action(
            "/stores/{store}/connect",
            _("Connect the store"),
            "connect",
            Role.TECHNICIAN,
            _connect,
            _ask_connect,
        ),
    ),
)
