"""What is asked about orders, and done about one."""

from typing import Protocol

from tillbridge.web.ports.answer import Answer


class OrdersControl(Protocol):
    """What is asked about orders, and done about one."""

    async def list(
        self, *, text: str = "", state: str = "", store: str = "", page: int = 1
    ) -> Answer:
        """Return `orders` of a page, newest first, as `order_part`; `count`, `page`, `pages`.

        `text` is part of an id, a number or a ticket's reference; `state` is one of
        `order_search.STATES`, "" for all. `unseen` counts new orders that nobody has looked at,
        and `sound` tells whether they are to be heard.
        """
        ...

    async def show(self, order_id: str) -> Answer:
        """Return an order whole: also `life`, `delivery`, `ordered`, `order` and `may`."""
        ...

    async def seen(self) -> Answer:
        """Take note that somebody has looked at the new orders."""
        ...

    async def retry(self, order_id: str) -> Answer:
        """Try at once what still has to be done for an order."""
        ...

    async def cancel(self, order_id: str, *, reason_code: str) -> Answer:
        """Cancel an order with a reason code."""
        ...

    async def done(self, order_id: str, *, how: str) -> Answer:
        """Leave an order to a person, who has `typed` it into the till or `settled` it."""
        ...
