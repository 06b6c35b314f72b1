"""Set-up: from nothing to the first order, each step tested before the next opens."""

from collections.abc import Mapping

from tillbridge.i18n import _
from tillbridge.status.roles import Role
from tillbridge.status.web.book import Filled, Page, Subject, Visit

TITLES: Mapping[str, str] = {
    "service": _("The ordering service"),
    "sign_in": _("Sign-in"),
    "store": _("The store"),
    "adapter": _("The till"),
    "address": _("The public address"),
    "order": _("The first order"),
}


async def _fill(visit: Visit) -> Filled:
    answer = await visit.control.setup.show()
    steps = [
        {**step, "number": number, "title": TITLES[step["name"]]}
        for number, step in enumerate(answer["steps"], 1)
    ]
    return {"setup": answer, "steps": steps}


SUBJECT = Subject(pages=(Page("/setup", _("Set-up"), "setup.html", _fill, role=Role.TECHNICIAN),))
