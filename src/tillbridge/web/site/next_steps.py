"""What is worth doing after set-up, on the pages Set-up and Settings."""

from collections.abc import Mapping, Sequence
from typing import Any

from tillbridge.core.actor import Role
from tillbridge.core.i18n import N_
from tillbridge.web.site.book import Visit

# After set-up: what it is good for, and where it is done.
_STEPS: Mapping[str, tuple[str, str, str]] = {
    "hours": (
        N_("Enter your opening hours"),
        N_("Guests see them, and you change them here for holidays."),
        "/settings/hours",
    ),
    "alerts": (
        N_("Set up alerts"),
        N_("Be notified when orders cannot reach the till."),
        "/settings/alerts",
    ),
    "password": (
        N_("Add users and passwords"),
        N_("Then only people with a password can open this page."),
        "/settings/people",
    ),
    "tablet": (
        N_("Open the page on the kitchen tablet"),
        N_("Serve this page to your network, then open it on the tablet."),
        "/settings/people",
    ),
    "backup": (
        N_("Back up daily"),
        N_("So that another machine can take over."),
        "/settings/backup",
    ),
    "service": (
        N_("Start the bridge with this machine"),
        N_("It then restarts by itself after a power cut."),
        "/settings#service",
    ),
}

# Title, text, path, whether it is done.
NextStep = tuple[str, str, str, bool]


def steps_of(found: Sequence[Mapping[str, Any]]) -> list[NextStep]:
    """Return the steps that `config.show` tells of as they are shown."""
    return [(*_STEPS[each["name"]], each["done"]) for each in found]


async def what_next(visit: Visit) -> list[NextStep]:
    """Return the steps; none for those who may not take them."""
    if visit.visitor.role < Role.TECHNICIAN:
        return []
    return steps_of((await visit.perform("config.show"))["next"])
