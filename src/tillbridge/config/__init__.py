"""The settings of `bridge.toml`: names, types, defaults, meaning, and how the file is read.

Durations are in seconds (`_s`) or milliseconds (`_ms`). The text below each field becomes the JSON
Schema in `config/` and the reference in `docs/configuration.md`.

Its modules are imported when a name of theirs is asked for: `status` reads the file without the
models, which cost as much as all the rest of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tillbridge.config.bridge import AlertSettings as AlertSettings
    from tillbridge.config.bridge import AppriseSettings as AppriseSettings
    from tillbridge.config.bridge import AssumptionSettings as AssumptionSettings
    from tillbridge.config.bridge import BridgeSettings as BridgeSettings
    from tillbridge.config.bridge import EmailSettings as EmailSettings
    from tillbridge.config.bridge import LedgerSettings as LedgerSettings
    from tillbridge.config.bridge import PageUser as PageUser
    from tillbridge.config.bridge import ReceiverSettings as ReceiverSettings
    from tillbridge.config.bridge import ServiceSettings as ServiceSettings
    from tillbridge.config.bridge import Settings as Settings
    from tillbridge.config.bridge import StatusPageSettings as StatusPageSettings
    from tillbridge.config.bridge import WebhookSettings as WebhookSettings
    from tillbridge.config.loading import LoadedSettings as LoadedSettings
    from tillbridge.config.loading import load as load
    from tillbridge.config.secrets import Secret as Secret
    from tillbridge.config.secrets import SecretSource as SecretSource
    from tillbridge.config.store import AdapterSection as AdapterSection
    from tillbridge.config.store import CommunitySettings as CommunitySettings
    from tillbridge.config.store import MenuSettings as MenuSettings
    from tillbridge.config.store import OrderSettings as OrderSettings
    from tillbridge.config.store import PosSettings as PosSettings
    from tillbridge.config.store import ScheduleSettings as ScheduleSettings
    from tillbridge.config.store import StoreSettings as StoreSettings
    from tillbridge.config.toml import ConfigFaults as ConfigFaults
    from tillbridge.config.values import host_and_port as host_and_port
    from tillbridge.config.values import is_loopback as is_loopback
    from tillbridge.config.values import origin_of as origin_of

_MODULES = ("bridge", "loading", "secrets", "store", "toml", "values")


def __getattr__(name: str) -> object:
    for module in _MODULES if name not in _MODULES else ():
        found = import_module(f"{__name__}.{module}")
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(name)
