"""The overview: in five seconds, what is wrong and what to do; and the buttons that do it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from tillbridge.core.errors import BridgeError
from tillbridge.core.formats import clock_time, weekday
from tillbridge.core.i18n import N_, _, ngettext
from tillbridge.core.problems import PROBLEMS
from tillbridge.operations.problems import Fleet
from tillbridge.status import sentences
from tillbridge.status.overview import LINKS, OUTAGES, Bar, Charts, Overview, Span
from tillbridge.status.sentences import amounts, opening_of, store_names
from tillbridge.status.views import ProblemView
from tillbridge.web.site.book import TEXTS, Done, Filled, Page, Question, Visit, performs, subject
from tillbridge.web.site.store import blocks

# The page with more about it and its link, by the code or its beginning (the longest counts).
PAGES: Mapping[str, tuple[str, str]] = TEXTS["problem_pages"]


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
    """Return the page with more about a problem; None if there is none."""
    code = str(problem["code"])
    found = max((each for each in PAGES if code.startswith(each)), key=len, default=None)
    if found is None or (found == "export." and problem["subject"] != "menu"):
        return None
    if code == "menu.held":  # its buttons lead to the review
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
        "names": store_names(found),
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


# -- the charts: orders by the hour and by the day, and the outages below them; pure


HEIGHT = 100  # of a bar's drawing, in its own units
WIDTH = 1000  # of the lane of outages
_LEAST_TOP = 4  # a single order is no bar of full height


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart: its bars, the numbers of its axis from the top down, its outages and their sums."""

    span: str  # "day" or "week"
    bars: Sequence[Mapping[str, Any]]
    ticks: Sequence[int]
    outages: Sequence[Mapping[str, Any]]
    kinds: Sequence[Mapping[str, Any]]
    orders: int
    cancelled: int


def drawn(charts: Charts, span: str) -> Drawn:
    """Return the chart of a "day" (24 hours) or a "week" (7 days)."""
    is_week = span == "week"
    bars = charts["days" if is_week else "hours"]
    top = top_of(max((each["orders"] for each in bars), default=0))
    begin, end = bars[0]["from_ms"] if bars else 0, charts["until_ms"]
    outages = [each for each in charts["outages"] if each["until"] > begin]
    return Drawn(
        span,
        [_bar(each, top, charts["zone"], is_week=is_week) for each in bars],
        (top, top // 2, 0),
        [{**each, "name": name_of(each), **_place(each, bars, end)} for each in outages],
        kinds_of(outages),
        sum(each["orders"] for each in bars),
        sum(each["cancelled"] for each in bars),
    )


def top_of(most: int) -> int:
    """Return where an axis ends that shows `most`: an even round number."""
    step = 1
    while True:
        for each in (2, 4, 6, 8, 10):
            if each * step >= max(most, _LEAST_TOP):
                return each * step
        step *= 10


def _bar(bar: Bar, top: int, zone: tzinfo | None, *, is_week: bool) -> Mapping[str, Any]:
    at = datetime.fromtimestamp(bar["from_ms"] / 1000, UTC).astimezone(zone)
    good = round((bar["orders"] - bar["cancelled"]) * HEIGHT / top, 1)
    bad = round(bar["cancelled"] * HEIGHT / top, 1)
    return {
        **bar,
        "label": _day(at) if is_week else clock_time(bar["from_ms"], bar["from_ms"]),
        "tick": is_week or at.hour % 3 == 0,
        "major": is_week or at.hour % 6 == 0,
        "good": good,
        "good_y": round(HEIGHT - good, 1),
        "bad": bad,
        "bad_y": round(HEIGHT - good - bad, 1),
    }


def _day(at: datetime) -> str:
    return f"{weekday(at.date().isoformat())} {at.day}"


def _place(span: Span, bars: Sequence[Bar], end: int) -> Mapping[str, float]:
    """Return where an outage is drawn below the bars, each of which is as wide as the others."""
    left, right = (_along(span[each], bars, end) for each in ("since", "until"))
    width = max(right - left, 2.0)
    return {"x": round(min(left, WIDTH - width), 1), "width": round(width, 1)}


def _along(at_ms: int, bars: Sequence[Bar], end: int) -> float:
    begins = [each["from_ms"] for each in bars]
    # The last bar is an hour or a day that is not over: as long as the one before it.
    length = begins[-1] - begins[-2] if len(begins) > 1 else max(1, end - begins[0])
    ends = [*begins[1:], begins[-1] + length]
    for place, (begin, until) in enumerate(zip(begins, ends, strict=True)):
        if at_ms < until:
            within = max(0.0, (at_ms - begin) / max(1, until - begin))
            return (place + within) * WIDTH / len(begins)
    return float(WIDTH)


def name_of(span: Span) -> str:
    """Return what an outage is called."""
    return _(OUTAGES[span["code"]])


def kinds_of(spans: Iterable[Span]) -> list[Mapping[str, Any]]:
    """Return the outages of each kind and store together, the latest first.

    `times` there were, `seconds` in all, when the last one began (`since`) and ended (`until`), and
    whether it is over (`ended`).
    """
    kinds: dict[tuple[str, str], list[Span]] = {}
    for each in spans:
        kinds.setdefault((each["code"], each["store"]), []).append(each)
    found = []
    for (_code, store), of_it in kinds.items():
        last = max(of_it, key=lambda each: (not each["ended"], each["since"]))
        times = len(of_it)
        found.append(
            {
                "name": name_of(last),
                "store": store,
                "times": ngettext("{n} time", "{n} times", times).format(n=times),
                "several": times > 1,
                "seconds": sum(each["until"] - each["since"] for each in of_it) / 1000,
                "since": last["since"],
                "until": last["until"],
                "ended": last["ended"],
            }
        )
    return sorted(found, key=lambda each: (each["ended"], -each["until"]))


# -- all stores of this bridge, and all bridges that report to it

# As the overview says it, and what only a list of bridges can be.
LEVELS: Mapping[str, tuple[str, str]] = {
    "ok": (N_("All is well"), "good"),
    "warning": (N_("Needs attention"), "warn"),
    "down": (N_("Needs help now"), "bad"),
    "silent": (N_("No report"), "bad"),
    "untrusted": (N_("Not trusted"), "bad"),
}


async def _fill_stores(visit: Visit) -> Filled:
    status = await visit.status()
    problems = status["problems"]
    return {
        "stores": [
            {
                "key": key,
                "name": part["service"]["store_name"] or key,
                "opening": opening_of(key, part, visit.now_ms),
                "online": part["pos"]["online"],
                "today": part["orders"]["today"],
                "waiting": part["orders"]["waiting"],
                "off_sale": part["menu"]["off_sale"],
                "problems": sum(each["store"] == key for each in problems),
                "is_down": any(
                    each["store"] == key and each["severity"] == "down" for each in problems
                ),
            }
            for key, part in status["stores"].items()
        ],
        "amounts": amounts,
        "bridges": status.get("bridges", {}),
        "common": sum(each["store"] not in status["stores"] for each in problems),
    }


async def _fill_fleet(visit: Visit) -> Filled:
    found: Fleet | None = None
    trouble: BridgeError | None = None
    try:
        found = await visit.perform("fleet.bridges")
    except BridgeError as failure:  # the folder is away, a key is misspelt: the page says so
        trouble = failure
    bridges: list[dict[str, Any]] = [] if found is None else found["bridges"]
    return {
        "is_set_up": found is None or found["is_set_up"],
        "summary": "" if found is None else found["text"],
        "bridges": bridges,
        "trouble": trouble,
        "levels": LEVELS,
        "amounts": amounts,
    }


GLANCE = subject(
    Page("/stores", N_("All stores"), "stores.html", _fill_stores),
    Page("/fleet", N_("All bridges"), "fleet.html", _fill_fleet),
    home="/store",
)
