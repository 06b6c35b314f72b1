"""Whether calls for a store make sense now. Specification: Integration status; Errors.

Without an active integration every call about the store's menu, orders, tables and settings is
refused with store.not_integrated. Such calls are not made: they are refused here, with that code.
"""

from collections.abc import Callable

from tillbridge.core.errors import Refused, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.service.answers import NOT_INTEGRATED

_GUARDED = ("menus.", "items.", "orders.", "tables.", "stores.")
_FREE = "stores.list"

log = get_logger()


class StoreDoor:
    """Shut while the store has no active integration; open at first, since nothing is known."""

    def __init__(self, store: str, on_opened: Callable[[], None]) -> None:
        self._store = store
        self._on_opened = on_opened
        self._why = ""

    @property
    def is_open(self) -> bool:
        """Whether calls are made."""
        return not self._why

    def shut(self, why: str) -> None:
        """Make no more calls; `why` is a word for the log."""
        if why != self._why:
            log.info("store.door_shut", store=self._store, why=why)
        self._why = why

    def open(self) -> None:
        """Make calls again, and let those who wait know."""
        if self._why:
            log.info("store.door_opened", store=self._store)
            self._why = ""
            self._on_opened()

    def guards(self, operation: str) -> bool:
        """Whether a call needs an active integration."""
        return operation.startswith(_GUARDED) and operation != _FREE

    def refusal(self, operation: str) -> ServiceError | None:
        """Return why the call is not made; None where it may be."""
        if self.is_open or not self.guards(operation):
            return None
        return Refused(
            _("The store is not integrated with this bridge now."),
            code=NOT_INTEGRATED,
            status=404,
            operation=operation,
            fix=_("See what to do with: tillbridge integration show {store}").format(
                store=self._store
            ),
        )
