"""Everything at a glance: all stores of this bridge, and all bridges that report to it."""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import N_
from tillbridge.operations.problems import Fleet
from tillbridge.status.sentences import amounts, opening_of
from tillbridge.web.site.book import Filled, Page, Visit, subject

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


SUBJECT = subject(
    Page("/stores", N_("All stores"), "stores.html", _fill_stores),
    Page("/fleet", N_("All bridges"), "fleet.html", _fill_fleet),
    home="/store",
)
