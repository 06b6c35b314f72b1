"""What is asked about setting the bridge up."""

from collections.abc import Mapping
from typing import Protocol

from tillbridge.web.ports.answer import Answer


class SetupControl(Protocol):
    """What the page asks about setting the bridge up, step by step. Nothing shows a secret."""

    async def show(self, adapter: str = "") -> Answer:
        """Return how far it is, and what the forms hold; `adapter` is one that is looked at.

        `steps`, each with `name` (service, sign_in, store, adapter, address, order), `state`
        (done, open, shut), `text` and `fix`; `next`, the one to take now, "" for none. `running`:
        a bridge runs already; `restarting`: it begins anew; `writable`: this user may
        write the file; `refused` {text, fix}: what was
        written could not be started with, and the file is as it was. For the forms `service`,
        `sign_in`, `choice`, `till` (with `preview`), `address`, and `storefront`, where a
        guest orders at the practice service; `written` {lines, faults, digest}
        is what would be written.
        """
        ...

    async def service(self, base_url: str) -> Answer:
        """Test whether the ordering service answers there."""
        ...

    async def sign_in(self, client_id: str, client_secret: str) -> Answer:
        """Test the app's id and secret; an empty secret stays as it is."""
        ...

    async def allow(self, email: str) -> Answer:
        """Begin the merchant's consent; return the `url` to open."""
        ...

    async def sign_up(self, form: Mapping[str, str]) -> Answer:
        """Make a merchant and a store; return the `url` to open. The form is that of `signup`."""
        ...

    async def choose(self, store: str, *, store_id: str, location_id: str, currency: str) -> Answer:
        """Say which of the merchant's stores this is; `store` is its local name."""
        ...

    async def till(self, adapter: str, form: Mapping[str, str]) -> Answer:
        """Try an adapter with the options of a form."""
        ...

    async def orders(self, adapter: str, form: Mapping[str, str]) -> Answer:
        """Let another adapter write the orders."""
        ...

    async def address(self, listen: str, public_url: str, *, anyway: bool) -> Answer:
        """Test whether the public address leads here; `anyway` goes on where nobody can tell."""
        ...

    async def write(self, digest: str) -> Answer:
        """Write the difference of that digest into the file, and begin anew with it."""
        ...

    async def text(self) -> Answer:
        """Return `file`, the whole `text` as it would be, `lines`, `faults` and its `digest`.

        For commands alone: the file may hold secrets of others.
        """
        ...

    async def written(self, digest: str) -> Answer:
        """Take note that a command has written the text of that digest, and begin anew with it."""
        ...

    async def forget(self) -> Answer:
        """Forget what was said and is not written."""
        ...

    async def order(self) -> Answer:
        """Place an order at the practice service."""
        ...
