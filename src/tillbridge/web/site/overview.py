"""The overview: in five seconds, what is wrong and what to do; and the buttons that do it."""

from collections.abc import Mapping
from dataclasses import dataclass

from tillbridge.core.i18n import N_, _
from tillbridge.core.problems import PROBLEMS
from tillbridge.status import sentences
from tillbridge.status.overview import LINKS, Overview
from tillbridge.status.views import ProblemView
from tillbridge.web.site.book import Done, Filled, Page, Question, Visit, performs, subject
from tillbridge.web.site.charts import drawn
from tillbridge.web.site.store import blocks

# The page that tells more and its link, by the code or its beginning (the longest counts).
PAGES: Mapping[str, tuple[str, str]] = {
    "adapter.": ("/diagnostics/logs", N_("Read the log")),
    "bridge.not_set_up": ("/setup", N_("Set up")),
    "export.": ("/stores/{store}/menu/difference", N_("Show the rows")),
    "fallback.offline": ("/diagnostics", N_("Run diagnostics")),
    "menu.": ("/menu", N_("Open the menu")),
    "order.": ("/orders/{order}", N_("Show the order")),
    "order.unreadable": ("/orders", N_("Show the orders")),
    "order.untold": ("/orders", N_("Show the orders")),
    "order.cancelled": ("/orders", N_("Show the orders")),
    "order.other_currency": ("/setup", N_("Change the currency")),
    "service.refused": ("/orders/{order}", N_("Show the order")),
    "pos.offline": ("/diagnostics", N_("Run diagnostics")),
    "clock.wrong": ("/diagnostics", N_("Run diagnostics")),
    "disk.low": ("/diagnostics", N_("Run diagnostics")),
    "public_address.": ("/reach", N_("Check the public address")),
    "receiver.certificate": ("/reach", N_("Check the public address")),
    "service.bad_client": ("/setup", N_("Change the sign-in")),
    "service.unreachable": ("/diagnostics", N_("Run diagnostics")),
    "store.": ("/store", N_("Store settings")),
    "tables.": ("/tables", N_("Show the tables")),
    "tax.": ("/store", N_("Store settings")),
}


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action or a page that helps, with the parts of its path; `text` is what a link says."""

    path: str
    parts: Mapping[str, str]
    text: str = ""


def remedies_of(problem: ProblemView) -> list[Remedy]:
    """Return the actions that may be offered for a problem of the status document."""
    offered = (_filled(path, problem) for path in PROBLEMS[str(problem["code"])].buttons)
    return [each for each in offered if each is not None]


def page_of(problem: ProblemView) -> Remedy | None:
    """Return the page that tells more about a problem; None where there is none."""
    code = str(problem["code"])
    found = max((each for each in PAGES if code.startswith(each)), key=len, default=None)
    if found is None or (found == "export." and problem["subject"] != "menu"):
        return None
    path, text = PAGES[found]
    return _filled(path, problem, _(text))


def _filled(path: str, problem: ProblemView, text: str = "") -> Remedy | None:
    parts = {"store": str(problem["store"]), "order": str(problem["subject"])}
    needed = {name: part for name, part in parts.items() if f"{{{name}}}" in path}
    return Remedy(path, needed, text) if all(needed.values()) else None


# Where a link of the chain leads.
LINK_PAGES: Mapping[str, str] = {
    "service": "/store",
    "address": "/reach",
    "bridge": "/diagnostics/logs",
    "pos": "/diagnostics",
}


async def _fill(visit: Visit) -> Filled:
    found: Overview = await visit.perform("status.overview")
    return {
        **found,
        "kinds": PROBLEMS,
        "remedies_of": remedies_of,
        "page_of": page_of,
        "chart": drawn(found["charts"], visit.one_of("span", {"week"}) or "day"),
        "links": LINKS,
        "link_pages": LINK_PAGES,
        "names": {
            name: store["service"]["store_name"] or name for name, store in found["stores"].items()
        },
        "sentences": sentences,
        "community_blocks": blocks(found),
    }


async def _connect(visit: Visit) -> Done:
    store = visit.params["store"]
    begun = await visit.perform("connect", store=store)
    return Done(
        _("Sign in at the ordering service to connect {store}.").format(
            store=await visit.store_name()
        ),
        link=str(begun["url"]),
        link_text=_("Open the sign-in page"),
    )


SUBJECT = subject(
    Page("/", _("Overview"), "overview.html", _fill),
    performs("/problems/{code}/ack", _("Acknowledge"), "problems.acknowledge"),
    performs(
        "/stores/{store}/connect",
        _("Connect the store"),
        "connect",
        do=_connect,
        ask=Question(
            _(
                "Sign in at the ordering service and allow this bridge to work for {store}. "
                "Do it in a browser on the bridge's own machine."
            ),
            _("Connect {store}"),
        ),
    ),
)
