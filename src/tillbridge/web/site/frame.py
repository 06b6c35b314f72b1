"""What stands around every page: the tab's title and icon, the store, the count of problems."""

from collections.abc import Mapping
from dataclasses import dataclass

from tillbridge.core.i18n import _, ngettext
from tillbridge.status.views import Level, StatusDocument
from tillbridge.web.rendering import static_address

_ICONS: Mapping[Level, str] = {
    "ok": "icon.svg",
    "warning": "icon-warning.svg",
    "down": "icon-down.svg",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of a page, as `layout.html` shows it.

    `title` is what the tab says before the page's own title: "" while all is well. `count` are the
    problems that nobody handles yet; `level` is the verdict's.
    """

    title: str = ""
    store: str = ""
    count: int = 0
    level: Level = "ok"

    @property
    def icon(self) -> str:
        """The address of the tab's picture."""
        return static_address(_ICONS[self.level])


def frame_of(status: StatusDocument) -> Frame:
    """Return the frame of a page that is shown while the bridge is as `status` says."""
    verdict = status["verdict"]
    count = sum(not each["acknowledged"] for each in status["problems"])
    title, level = "", verdict["level"]
    if verdict["handled"]:
        title, level = _("Being handled"), "ok"
    elif level == "down":
        title = _("({n}) Needs help").format(n=count)
    elif level == "warning":
        title = _("({n}) Needs attention").format(n=count)
    return Frame(title, _stores(status), count, level)


def _stores(status: StatusDocument) -> str:
    stores = status["stores"]
    if len(stores) > 1:
        return ngettext("{n} store", "{n} stores", len(stores)).format(n=len(stores))
    return next((each["service"]["store_name"] or key for key, each in stores.items()), "")
