"""How the internet may reach the receiver: ready configuration for whoever sets the machine up."""

from tillbridge.core.i18n import _
from tillbridge.web.site.book import Filled, Page, Subject, Visit


async def _fill(visit: Visit) -> Filled:
    told = await visit.perform("diagnostics.reach")
    asked = visit.query.get("way", "")
    names = {each["name"] for each in told["ways"]}
    return {"reach": told, "open": asked if asked in names else told["fits"]}


SUBJECT = Subject(
    pages=(
        Page(
            "/reach",
            _("How orders get in"),
            "reach.html",
            _fill,
            section="/diagnostics",
            live=False,  # what one copies must not change under the hand
        ),
    )
)
