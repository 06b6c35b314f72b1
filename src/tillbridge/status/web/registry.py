"""The page's subjects and its navigation: a new page is a line here."""

from tillbridge.status.web import overview
from tillbridge.status.web.book import Action, File, NavigationLine, Page

SUBJECTS = (overview.SUBJECT,)

# Shown in this order; a line whose page is not there yet is left out.
NAVIGATION = (
    NavigationLine("/", "Overview"),
    NavigationLine("/orders", "Orders"),
    NavigationLine("/menu", "Menu"),
    NavigationLine("/86", "86"),
    NavigationLine("/tables", "Tables"),
    NavigationLine("/store", "Store"),
    NavigationLine("/diagnostics", "Diagnostics"),
    NavigationLine("/setup", "Set-up"),
)


def everything() -> list[Page | File | Action]:
    """Return all that the subjects bring."""
    all_of_it: list[Page | File | Action] = []
    for subject in SUBJECTS:
        all_of_it += [*subject.pages, *subject.files, *subject.actions]
    return all_of_it
