"""Opens an adapter in a thread of its own: code of vendors may hang or break while it is opened.

The store then goes on with a POS that is offline and says why; all other stores do not notice.
"""

import asyncio
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

from tillbridge.adapter import (
    AdapterContext,
    Catalogue,
    Closes,
    Health,
    Order,
    PosOffline,
    Ticket,
    TicketMark,
)
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.pos.call_thread import CallThread
from tillbridge.pos.loader import AdapterNotLoaded, open_adapter

log = get_logger()

OPENS_WITHIN_S = 5.0
"""How long a start waits for all adapters; one that takes longer is used once it is open."""


class NotOpened:
    """Stands in for an adapter that is not open: a POS that is offline, with the reason."""

    def __init__(self, detail: str, fix: str) -> None:
        self._detail = detail
        self._fix = fix

    def health(self) -> Health:
        """Return that the POS is offline."""
        return Health(online=False, detail=self._detail, fix=self._fix)

    def read_catalogue(self) -> Catalogue:
        """Raise PosOffline."""
        self._refuse()

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Raise PosOffline: nothing was written."""
        del order, key
        self._refuse()

    def find_ticket(self, key: str) -> Ticket | None:
        """Raise PosOffline: nobody can tell."""
        del key
        self._refuse()

    def write_marked_ticket(self, order: Order, key: str, marks: AbstractSet[TicketMark]) -> Ticket:
        """Raise PosOffline: nothing was written."""
        del order, key, marks
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise PosOffline(self._detail, fix=self._fix)


class AdapterOpening:
    """The opening of one adapter of a store. Used from the event loop."""

    def __init__(
        self, adapter: str, options: dict[str, Any], context: AdapterContext, *, table: str
    ) -> None:
        self.adapter = adapter
        self._options = options
        self._context = context
        self._table = table
        self._thread = CallThread(f"{context.store} {table} opens")
        self._attempt = self._begin()

    def _begin(self) -> "asyncio.Future[object]":
        _call, attempt = self._thread.submit(
            lambda: open_adapter(self.adapter, self._options, self._context, table=self._table)
        )
        return attempt

    async def opened(self, within_s: float) -> object:
        """Return the adapter's object, or NotOpened for one that hangs or breaks.

        Raises ConfigError where its options are wrong.
        """
        await asyncio.wait([self._attempt], timeout=within_s)
        if not self._attempt.done():
            return self._not_opened(
                _("The adapter {adapter} does not get ready: opening it hangs.").format(
                    adapter=self.adapter
                )
            )
        failure = self._attempt.exception()
        if failure is None:
            self._thread.close()
            return self._attempt.result()
        if isinstance(failure, ConfigError) and not isinstance(failure, AdapterNotLoaded):
            raise failure
        return self._not_opened(
            _("The adapter {adapter} cannot be opened: {detail}").format(
                adapter=self.adapter, detail=_reason(failure)
            )
        )

    def _not_opened(self, detail: str) -> NotOpened:
        log.error(
            "adapter.not_opened", store=self._context.store, adapter=self.adapter, detail=detail
        )
        return NotOpened(
            detail,
            _(
                "Check that the till, its database or the network share of its files answers, and "
                "that the adapter fits this bridge. It is opened as soon as that works."
            ),
        )

    def can_be_opened(self) -> bool:
        """Whether an attempt has succeeded meanwhile; one that has failed is begun again."""
        if not self._attempt.done():
            return False
        failure = self._attempt.exception()
        if failure is not None:
            self._attempt = self._begin()
            return False
        return True

    def close(self) -> None:
        """Close what an attempt has opened and nobody has taken."""
        self._thread.close()
        if self._attempt.done() and not self._attempt.cancelled():
            if self._attempt.exception() is None:
                adapter = self._attempt.result()
                if isinstance(adapter, Closes):
                    adapter.close()
        else:
            self._attempt.cancel()


def _reason(failure: BaseException) -> str:
    text = failure.text if isinstance(failure, ConfigError) else str(failure)
    return f"{type(failure).__name__}: {text}"
