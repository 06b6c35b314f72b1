"""All that is asked of a running bridge, subject by subject."""

from collections.abc import Mapping
from typing import Protocol

from tillbridge.web.ports.answer import Answer
from tillbridge.web.ports.setup import SetupControl


class Control(Protocol):
    """What commands ask of a running bridge. JSON out; failures are `BridgeError`s.

    Instants are ms since the epoch. Each answer of an action holds `text`, one sentence for the
    person who asked, and `ok` (false: it was not done, and the command fails).
    """

    @property
    def setup(self) -> SetupControl:
        """What is asked about setting the bridge up."""
        ...

    async def status(self) -> Answer:
        """Return the status document."""
        ...

    async def measures(self) -> Answer:
        """Return what `/metrics` is made of: `status`, `pushes`, `ledger_bytes`, ..."""
        ...

    async def overview(self) -> Answer:
        """Return the status document with `chain`, `waiting` and `day` (see `overview`)."""
        ...

    async def connect(
        self, store: str, *, reintegrate: bool, store_id: str = "", email: str = ""
    ) -> Answer:
        """Begin to connect a store; return `url`, which the merchant opens, and `state`.

        `store_id` says which of the merchant's stores it is, `email` who the merchant is.
        """
        ...

    async def connect_choose(self, store: str, *, store_id: str, reintegrate: bool) -> Answer:
        """Go on with one of the stores that `connect_result` told as `choose`; answers as it."""
        ...

    async def signup(self, store: str, *, form: Mapping[str, str], flow_type: str) -> Answer:
        """Begin to sign a merchant up; as `connect`, and `as_login` where the merchant exists.

        `form` has the fields of `tillbridge signup`, by their options.
        """
        ...

    async def connect_result(self, state: str) -> Answer:
        """Return `done`; once it is true also `ok`, `text`, `fix` and `webhook_url`."""
        ...
