"""The whole of `bridge.toml` as one model, and its JSON Schema."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, SecretStr

from tillbridge.config.alerts import AlertSettings, FleetSettings
from tillbridge.config.bridge import (
    AssumptionSettings,
    BridgeSettings,
    DiagnosticSettings,
    ReceiverSettings,
    SecretSource,
    ServiceSettings,
    StatusPageSettings,
)
from tillbridge.config.store import CommunitySettings, StoreSettings
from tillbridge.config.values import Section

# It stands in the webhook's address.
StoreName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class Settings(Section):
    """The whole of bridge.toml.

    A table that is not there is constructed: validating it would take a validator of its own.
    """

    bridge: BridgeSettings = Field(default_factory=BridgeSettings.model_construct)
    service: ServiceSettings
    receiver: ReceiverSettings
    status_page: StatusPageSettings = Field(default_factory=StatusPageSettings.model_construct)
    diagnostics: DiagnosticSettings = Field(default_factory=DiagnosticSettings.model_construct)
    alerts: AlertSettings = Field(default_factory=AlertSettings.model_construct)
    fleet: FleetSettings = Field(default_factory=FleetSettings.model_construct)
    assumptions: AssumptionSettings = Field(default_factory=AssumptionSettings.model_construct)
    stores: dict[StoreName, StoreSettings] = Field(min_length=1)
    communities: dict[StoreName, CommunitySettings] = Field(default_factory=dict)

    def secrets(self) -> Iterator[tuple[tuple[str | int, ...], SecretStr | SecretSource]]:
        """Return where each secret of the bridge itself stands, and where it comes from."""
        yield ("service", "client_secret"), self.service.client_secret
        alerts = self.alerts
        if alerts.email is not None and alerts.email.password is not None:
            yield ("alerts", "email", "password"), alerts.email.password
        if alerts.webhook is not None:
            yield ("alerts", "webhook", "url"), alerts.webhook.url
            if alerts.webhook.secret is not None:
                yield ("alerts", "webhook", "secret"), alerts.webhook.secret
        if alerts.apprise is not None:
            for place, url in enumerate(alerts.apprise.urls):
                yield ("alerts", "apprise", "urls", place), url
        if self.fleet.token is not None:
            yield ("fleet", "token"), self.fleet.token


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of `bridge.toml`, for editors that complete and check."""
    schema = Settings.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "bridge.toml of tillbridge",
        "description": "Configuration of tillbridge; docs/configuration.md explains it.",
    }
