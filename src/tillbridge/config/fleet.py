"""The table [fleet]: where a bridge reports to whoever looks after many."""

import socket
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from tillbridge.config.bridge import Secret
from tillbridge.config.values import HttpUrl, Seconds, Section

BridgeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class FleetSettings(Section):
    """The table [fleet]."""

    name: BridgeName | None = Field(
        None, description="What this bridge is called in its reports; by default as its machine."
    )
    folder: Path | None = Field(
        None,
        strict=False,
        description="Signed reports are written there; relative to this file's folder.",
    )
    url: HttpUrl | None = Field(
        None,
        description="Signed reports are put there (HTTP PUT): NAME.json, NAME.json.minisig.",
    )
    token: Secret | None = Field(
        None, description="Sent with them as Authorization: Bearer ...: { file = ... } or text."
    )
    every_s: Seconds = Field(60, description="How often a report is made.")

    @property
    def is_wanted(self) -> bool:
        """Whether anything is reported."""
        return self.folder is not None or self.url is not None

    @property
    def called(self) -> str:
        """The name in the reports."""
        return (
            self.name
            or "".join(
                each if each.isascii() and (each.isalnum() or each in "-_.") else "-"
                for each in socket.gethostname()
            ).strip("-._")
            or "bridge"
        )
