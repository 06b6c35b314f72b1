"""What a POS can answer instead of a ticket: the failures an adapter raises.

The core turns each into the cancel reason for the customer (contract: Failures of a POS).
An adapter only states the fact; it never retries.
"""

from collections.abc import Iterable

from tillbridge.model.catalogue import BadRow
from tillbridge.parsing import Unreadable


class PosFailure(Exception):
    """The POS refused; `message` is in the POS's own words. Default reason: OTHER.

    `fix` is one sentence that says what a person should do about it, if the adapter knows.
    """

    def __init__(self, message: str = "", *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


class ItemUnavailable(PosFailure):
    """These items (external ids) cannot be sold now: ITEM_OUT_OF_STOCK, and they are 86ed."""

    def __init__(
        self, message: str = "", *, external_ids: Iterable[str] = (), fix: str = ""
    ) -> None:
        super().__init__(message, fix=fix)
        self.external_ids = tuple(external_ids)


class StoreClosed(PosFailure):
    """The POS takes no orders now (no open session, closed for the day): STORE_CLOSED."""


class PosOffline(PosFailure):
    """The POS cannot be reached, and nothing was written. The order waits and is written later."""


class AtCapacity(PosFailure):
    """The kitchen cannot take more: CAPACITY."""


class PriceMismatch(PosFailure):
    """The POS has other prices than the order: PRICE_MISMATCH, and the menu is re-synced."""


class TicketOutcomeUnknown(PosFailure):
    """The order was sent and no answer came: the POS may or may not have it.

    The core asks `find_ticket` before it writes again.
    """


class ExportUnreadable(Unreadable):
    """The export as a whole cannot be read now (missing, locked, half-written, not a table).

    The last good menu stays. `place` names file and row, `fix` says what to do. `passing` is True
    for temporary causes (still being written, locked by the till): the export is read again soon.
    """

    # The reference of the API shows how it is made.
    def __init__(self, text: str, *, place: str = "", fix: str = "", passing: bool = False) -> None:
        super().__init__(text, place=place, fix=fix, passing=passing)


class RowError(ValueError):
    """What is wrong with a record: the column as the export calls it, the value, what to do.

    `row` is the row it is in, where the record has several.
    """

    def __init__(
        self, column: str, value: str, text: str, fix: str, *, row: int | None = None
    ) -> None:
        super().__init__(text)
        self.column = column
        self.value = value
        self.text = text
        self.fix = fix
        self.row = row

    def at(self, place: str, external_id: str = "") -> BadRow:
        """Return it as the bad row at `place`, which stands for that item."""
        return BadRow(place, self.text, self.fix, external_id, self.column, self.value)
