"""The tables [alerts], [alerts.*] and [fleet]: who hears how the bridge is."""

import socket
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tillbridge.config.secrets import Secret
from tillbridge.config.values import HeartbeatUrl, HttpUrl, QuietHours, Seconds, Section

Address = Annotated[str, StringConstraints(pattern=r"^[^@\s<>\",;]+@[^@\s<>\",;]+$")]
Minutes = Annotated[float, Field(ge=0)]


class EmailSettings(Section):
    """The table [alerts.email]."""

    host: str = Field(min_length=1)
    """The mail server (SMTP)."""
    port: int = Field(587, ge=1, le=65535)
    """Its port."""
    tls: Literal["starttls", "tls", "none"] = "starttls"
    """How the connection is encrypted; none is for a server on this machine only."""
    username: str | None = Field(None, min_length=1)
    """Who signs in at the mail server; without it nobody does."""
    password: Secret | None = None
    """Its password: { file = ... }, { env = ... }, { credential = ... }."""
    sender: Address
    """The address that alerts come from."""
    to: list[Address] = Field(min_length=1)
    """The addresses that alerts go to."""
    timeout_s: Seconds = 20
    """How long the mail server may take for each step."""


class WebhookSettings(Section):
    """The table [alerts.webhook]."""

    url: Secret
    """Where alerts are posted as JSON: the address, or { file = ... } that holds it."""
    format: Literal["json", "slack", "teams", "discord"] = "json"
    """Everything, or the plain text that these chats understand."""
    secret: Secret | None = None
    """Signs each alert: X-Tillbridge-Signature is the HMAC-SHA256 of the body."""
    timeout_s: Seconds = 15
    """How long a call may take."""


class AppriseSettings(Section):
    """The table [alerts.apprise]; needs the extra tillbridge[apprise]."""

    urls: list[Secret] = Field(min_length=1)
    """Addresses of apprise, each as text or { file = ... }."""
    timeout_s: Seconds = 30
    """How long all of them together may take."""


class AlertSettings(Section):
    """The table [alerts]."""

    severity: Literal["warning", "down"] = "warning"
    """The least severe problems that are told."""
    stores: list[str] = Field(default_factory=list)
    """Only these stores' problems, and the bridge's own; [] means all."""
    repeat_min: list[Minutes] = Field(default_factory=lambda: [0.0, 5.0, 10.0], min_length=1)
    """So many minutes after its begin a problem is told, until it is acknowledged."""
    settle_s: Annotated[float, Field(ge=0)] = 60
    """A problem is over once it has been gone this long; one that is back sooner is the same
    one."""
    quiet_hours: QuietHours | None = None
    """Warnings wait for the end of these hours (this machine's time)."""
    docs_url: str = Field("docs/problems.md", min_length=1)
    """Where the explanations of problems are read; alerts lead there."""
    heartbeat_url: HeartbeatUrl | None = None
    """Asked (GET) while the bridge is well, so that silence tells of its end."""
    heartbeat_s: Seconds = 60
    """How often heartbeat_url is asked."""
    heartbeat_fail: str = Field("", pattern=r"^(|/[A-Za-z0-9._~/-]+)$")
    """What is added to heartbeat_url's path while the bridge is not well; "" asks nothing then."""
    email: EmailSettings | None = None
    """Alerts by e-mail."""
    webhook: WebhookSettings | None = None
    """Alerts by a webhook."""
    apprise: AppriseSettings | None = None
    """Alerts through apprise."""

    @property
    def are_wanted(self) -> bool:
        """Whether anything runs: a way of telling, or a heartbeat."""
        ways = (self.email, self.webhook, self.apprise)
        return self.heartbeat_url is not None or any(way is not None for way in ways)


BridgeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class FleetSettings(Section):
    """The table [fleet]."""

    name: BridgeName | None = None
    """What this bridge is called in its reports; by default as its machine."""
    folder: Path | None = Field(None, strict=False)
    """Signed reports are written there; relative to this file's folder."""
    url: HttpUrl | None = None
    """Signed reports are put there (HTTP PUT): NAME.json, NAME.json.minisig."""
    token: Secret | None = None
    """Sent with them as Authorization: Bearer ...: { file = ... } or text."""
    every_s: Seconds = 60
    """How often a report is made."""

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
