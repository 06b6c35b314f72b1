"""The settings of `bridge.toml`: names, types, defaults, meaning, and how the file is read.

Durations are in seconds (`_s`) or milliseconds (`_ms`). Each field's description becomes the JSON
Schema in `config/` and the reference in `docs/configuration.md`.
"""

from tillbridge.config.alerts import (
    AlertSettings,
    AppriseSettings,
    EmailSettings,
    FleetSettings,
    WebhookSettings,
)
from tillbridge.config.bridge import (
    AssumptionSettings,
    BridgeSettings,
    DiagnosticSettings,
    PageUser,
    ReceiverSettings,
    Secret,
    SecretSource,
    ServiceSettings,
    StatusPageSettings,
)
from tillbridge.config.faults import ConfigFaults, Fault
from tillbridge.config.loading import LoadedSettings, load
from tillbridge.config.settings import Settings, StoreName
from tillbridge.config.store import (
    AdapterSection,
    CommunitySettings,
    FallbackSettings,
    MenuSettings,
    MenuSyncDirection,
    OrderSettings,
    PosSettings,
    ScheduleSettings,
    StoreSettings,
    TableSettings,
)
from tillbridge.config.values import Section, host_and_port, is_loopback, origin_of

__all__ = [
    "AdapterSection",
    "AlertSettings",
    "AppriseSettings",
    "AssumptionSettings",
    "BridgeSettings",
    "CommunitySettings",
    "ConfigFaults",
    "DiagnosticSettings",
    "EmailSettings",
    "FallbackSettings",
    "Fault",
    "FleetSettings",
    "LoadedSettings",
    "MenuSettings",
    "MenuSyncDirection",
    "OrderSettings",
    "PageUser",
    "PosSettings",
    "ReceiverSettings",
    "ScheduleSettings",
    "Secret",
    "SecretSource",
    "Section",
    "ServiceSettings",
    "Settings",
    "StatusPageSettings",
    "StoreName",
    "StoreSettings",
    "TableSettings",
    "WebhookSettings",
    "host_and_port",
    "is_loopback",
    "load",
    "origin_of",
]
