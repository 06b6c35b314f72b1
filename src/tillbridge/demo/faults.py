"""The demo's own buttons on the control panel: what goes wrong with bridge and till."""

from collections.abc import Callable

from tillbridge.core.i18n import _
from tillbridge.demo.stage import Stage
from tillbridge.demo.till import FileMenu, FolderKitchen
from tillbridge.sandbox.pages import Button, Demo, Group

_DEAD_S = 20


def demo_of(stage: Stage) -> Demo:
    """Return what the control panel shows of the demo."""
    return Demo(stage.page_url + "/", (_bridge(stage), _till(stage)), lambda: _mend(stage))


def _bridge(stage: Stage) -> Group:
    def state(_sandbox: object) -> str:
        if stage.bridge_listens():
            return _("The bridge is running.")
        if seconds := stage.starts_in_s():
            return _("The bridge was killed. It restarts in {n} s.").format(n=seconds)
        return _("The bridge is starting.")

    kill = Button(
        _("Kill the bridge (kill -9)"),
        _(
            "It stays down for {n} s: order something meanwhile. The order's page shows when the "
            "service tries again, 60 s later. The till then has one ticket, not two."
        ).format(n=_DEAD_S),
        lambda _sandbox: stage.kill_bridge_for(_DEAD_S),
    )
    return Group(_("The bridge"), {"kill": kill}, state)


def _till(stage: Stage) -> Group:
    menu, kitchen = stage.till.menu, stage.till.kitchen
    buttons: dict[str, Button] = {}

    def offer(name: str, label: str, watch: str, press: Callable[[], object]) -> None:
        buttons[name] = Button(label, watch, lambda _sandbox: press())

    if isinstance(kitchen, FolderKitchen):
        offer(
            "till_stops",
            _("Stop the till's program"),
            _(
                "After about 10 s the bridge's page shows the till as offline; half a minute "
                "later the storefront closes. An order placed before that is in the till's "
                "folder, waiting for an answer."
            ),
            kitchen.stop,
        )
        offer(
            "till_away",
            _("Take the till's orders folder away"),
            _(
                "Like a network share that has disappeared. Order something: the bridge's page "
                "shows the order waiting for the till. After 2 minutes it is cancelled and "
                "refunded; undo the fault before that, and it becomes a ticket."
            ),
            kitchen.take_away,
        )
    if isinstance(menu, FileMenu):
        offer(
            "export_cut",
            _("Cut the menu file in half"),
            _(
                "Nothing disappears from the storefront. The bridge's page shows the row in "
                "which the export breaks off."
            ),
            menu.export_cut,
        )
        offer(
            "export_inflated",
            _("Export all prices 100 times too high"),
            _(
                "The storefront keeps its prices. The bridge's page holds the change until "
                "somebody decides."
            ),
            menu.export_inflated,
        )
    offer(
        "export_nothing",
        _("Export an empty menu"),
        _(
            "Nothing disappears from the storefront. The bridge's page says what is wrong with "
            "the export."
        ),
        menu.export_nothing,
    )

    def state(_sandbox: object) -> str:
        if not isinstance(kitchen, FolderKitchen):
            return ""
        if not kitchen.runs:
            return _("The till's program has stopped.")
        if kitchen.is_away:
            return _("The till's orders folder is gone.")
        return _("The till works. It takes {n:g} s for each step of an order.").format(
            n=kitchen.cooking_s
        )

    return Group(_("The till"), buttons, state)


def _mend(stage: Stage) -> None:
    stage.start_at_once()
    if isinstance(stage.till.kitchen, FolderKitchen):
        stage.till.kitchen.start()
        stage.till.kitchen.give_back()
    stage.till.menu.export()
