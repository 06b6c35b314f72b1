"""Help: an index of the problems by what one sees, and a page for each."""

from tillbridge.core.i18n import N_
from tillbridge.core.problem_help import index, title_of
from tillbridge.core.problems import PROBLEMS
from tillbridge.status.views import ProblemView
from tillbridge.web.site.book import Filled, Page, Visit, subject


async def _fill_index(visit: Visit) -> Filled:
    found: list[ProblemView] = (await visit.perform("problems.list"))["problems"]
    open_codes = dict.fromkeys(str(each["code"]) for each in found)
    return {
        "groups": index(),
        "open": [(code, title_of(code)) for code in open_codes if code in PROBLEMS],
    }


async def _fill(visit: Visit) -> Filled:
    # A store's name stands in commands that somebody may type: only one that there is.
    status = await visit.status()
    store = visit.one_of("store", status["stores"])
    found = await visit.perform("problems.show", code=visit.params["code"], store=store)
    return {"help": found}


SUBJECT = subject(
    Page("/help", N_("Help"), "help_index.html", _fill_index, live=False),
    Page("/help/{code}", N_("Help"), "help.html", _fill, live=False),
    home="/help",
)
