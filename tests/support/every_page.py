"""Every page there is, as addresses for a browser: the registry's, and a few beside it."""

import re
from collections.abc import Iterable

from tillbridge.web.site.book import Action, File, Page, path_of
from tillbridge.web.site.registry import EVERYTHING

# What stands for the parts in braces, in the samples of page_sample.py.
PARTS = {
    "store": "main",
    "order": "ord_1",
    "item": "p1",
    "community": "hall",
    "code": "pos.offline",
    "section": "alerts",
    "user": "anna",
    "backup": "ledger-1.db",
}
# Not in the registry, or another look of what is.
BESIDE = (
    "/login",
    "/nowhere",
    "/oauth/callback?state=x",
    "/orders?q=nothing-like-it",
    "/diagnostics/logs?q=nothing-like-it",
    "/diagnostics/audit?check=1&before=20",
    "/86?q=nothing-like-it",
    "/stores/main/menu/items?at=yesterday",
    "/settings/people?user=anna",
    "/settings/hours",
    "/settings/store?store=main",
    "/settings/backup",
)


def addresses(whats: Iterable[Page | File | Action] | None = None) -> list[str]:
    """Return an address of every page and question.

    LookupError for one whose address cannot be made: nobody would look at it.
    """
    made = []
    for what in EVERYTHING if whats is None else whats:
        if isinstance(what, File) or (isinstance(what, Action) and what.ask is None):
            continue
        for part in re.findall(r"\{([a-z_]+)\}", what.path):
            if part not in PARTS:
                raise LookupError(
                    f"no test looks at {what.path}: say in PARTS of tests/support/every_page.py "
                    f"what {part} may be"
                )
        made.append(path_of(what.path, PARTS))
    return [*made, *BESIDE]
