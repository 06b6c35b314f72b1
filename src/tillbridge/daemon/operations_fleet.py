"""What commands ask about the reports to whoever looks after many bridges."""

from typing import Any

from tillbridge.daemon.rooms import House


class FleetOperations:
    """The operations about reports."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def key(self) -> dict[str, Any]:
        """Return the name and the public key; the key is made where there is none yet."""
        # Only when somebody asks.
        from tillbridge.fleet.report import signing_key  # noqa: PLC0415 -- (as above)

        public = signing_key(self._house.ledger.vault).public
        return {"name": self._house.settings.fleet.called, "key": str(public)}
