"""The overview: in five seconds, what is wrong and what to do; and the buttons that do it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tillbridge.core.i18n import _
from tillbridge.core.problems import PROBLEMS
from tillbridge.status.overview import DayView, Overview, Span
from tillbridge.status.views import ProblemView
from tillbridge.web.site.book import Done, Filled, Page, Question, Visit, performs, subject
from tillbridge.web.site.store import blocks

# The page that tells more and its link, by the code or its beginning (the longest counts).
PAGES: Mapping[str, tuple[str, str]] = {
    "adapter.": ("/diagnostics/logs", _("Read the log")),
    "bridge.not_set_up": ("/setup", _("Set it up")),
    "export.": ("/stores/{store}/menu/difference", _("Which rows")),
    "fallback.offline": ("/diagnostics", _("Examine every link")),
    "menu.": ("/menu", _("The menu")),
    "order.": ("/orders/{order}", _("The order")),
    "order.unreadable": ("/orders", _("The orders")),
    "order.untold": ("/orders", _("The orders")),
    "order.cancelled": ("/orders", _("The orders")),
    "order.other_currency": ("/setup", _("Change the currency")),
    "service.refused": ("/orders/{order}", _("The order")),
    "pos.offline": ("/diagnostics", _("Examine every link")),
    "clock.wrong": ("/diagnostics", _("Examine every link")),
    "disk.low": ("/diagnostics", _("Examine every link")),
    "public_address.": ("/reach", _("How orders get in")),
    "receiver.certificate": ("/reach", _("How orders get in")),
    "service.bad_client": ("/setup", _("Change the sign-in")),
    "service.unreachable": ("/diagnostics", _("Examine every link")),
    "store.": ("/store", _("The store")),
    "tables.": ("/tables", _("The tables")),
    "tax.": ("/store", _("The store")),
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
    return _filled(path, problem, text)


def _filled(path: str, problem: ProblemView, text: str = "") -> Remedy | None:
    parts = {"store": str(problem["store"]), "order": str(problem["subject"])}
    needed = {name: part for name, part in parts.items() if f"{{{name}}}" in path}
    return Remedy(path, needed, text) if all(needed.values()) else None


HOURS = 24
WIDTH, HEIGHT, LANE = 960, 96, 12  # of the drawing, in its own units
_BAR = WIDTH / HOURS
_HOUR_MS = 3_600_000


def drawn(day: DayView) -> Filled:
    """Return the drawing of a day (`overview()`'s `day`): its bars by the hour, oldest first.

    `spans` are the times without a link, drawn in the lane below the bars.
    """
    begin, hours = int(day["from_ms"]), day["hours"]
    most = max([1, *(each["orders"] + each["failed"] for each in hours)])
    spans = [{**each, **_span(each, begin)} for each in day["spans"]]
    return {
        "bars": [_bar(place, each, most, begin) for place, each in enumerate(hours)],
        "spans": [each for each in spans if each["width"] > 0],
        "orders": sum(each["orders"] for each in hours),
        "failed": sum(each["failed"] for each in hours),
    }


def _bar(place: int, hour: Mapping[str, int], most: int, begin: int) -> Filled:
    """Return an hour as it is drawn, with its numbers; `hour` is this machine's time."""
    height = HEIGHT - LANE - 4
    good, bad = (round(height * hour[kind] / most, 1) for kind in ("orders", "failed"))
    at = datetime.fromtimestamp((begin + place * _HOUR_MS) / 1000).astimezone()
    return {
        **hour,
        "hour": at.strftime("%H:%M"),
        "x": round(place * _BAR + 2, 1),
        "width": round(_BAR - 4, 1),
        "orders_y": round(height - good, 1),
        "orders_height": good,
        "failed_y": round(height - good - bad, 1),
        "failed_height": bad,
    }


def _span(span: Span, begin: int) -> Filled:
    """Return where a time without a link is drawn; without a width where it is of another day."""
    scale = WIDTH / (HOURS * _HOUR_MS)
    left, right = (min(max(0.0, (span[end] - begin) * scale), WIDTH) for end in ("since", "until"))
    width = 0.0 if right <= 0 or left >= WIDTH else max(right - left, 2.0)
    return {"x": round(left, 1), "width": round(width, 1)}


async def _fill(visit: Visit) -> Filled:
    found: Overview = await visit.perform("status.overview")
    return {
        **found,
        "kinds": PROBLEMS,
        "remedies_of": remedies_of,
        "page_of": page_of,
        "strip": drawn(found["day"]),
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
