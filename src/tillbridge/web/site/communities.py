"""A community: its subscription, what is off sale there, and its orders with their parts."""

from collections.abc import Mapping
from typing import Any

from tillbridge.core.i18n import _
from tillbridge.web.site.book import Filled, Page, Subject, Visit

_ORDERS = 30
_KINDS: Mapping[str, str] = {"delivered": "", "completed": "", "cancelled": "bad", "ready": "good"}


def blocks(told: Mapping[str, Any]) -> list[Filled]:
    """Return the communities of a status document as the overview shows them; often none."""
    if "communities" not in told:
        return []
    from tillbridge.model.community import FINAL  # noqa: PLC0415 -- only where there are any

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
                each for each in told["problems"] if each["store"] == f"communities/{name}"
            ],
        }
        for name, part in told["communities"].items()
    ]


async def _fill(visit: Visit) -> Filled:
    name = visit.params["community"]
    # First, since it says in words that there is no such community.
    availability = await visit.perform("communities.availability", community=name)
    orders = await visit.perform("communities.orders", community=name, limit=_ORDERS)
    status = await visit.control.status()
    block = next((each for each in blocks(status) if each["name"] == name), None)
    return {
        "name": name,
        "block": block,
        "availability": availability,
        "orders": [
            {
                **each,
                "kind": _KINDS.get(each["status"], "warn"),
                "parts": [
                    {**part, "kind": _KINDS.get(part["status"], "warn")}
                    for part in each["children"]
                ],
            }
            for each in orders["orders"]
        ],
    }


SUBJECT = Subject(
    pages=(Page("/communities/{community}", _("Community"), "community.html", _fill, section="/"),),
)
