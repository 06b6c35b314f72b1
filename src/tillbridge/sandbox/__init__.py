"""A strict ordering service on this machine, to develop and test against.

It shares nothing with the bridge. `start()` runs one inside a test or a demo, `serve()` until it is
cancelled. `docs/sandbox.md` describes the control API, the settings, and what was chosen where the
specification is silent.
"""

from tillbridge.sandbox.server import RunningSandbox, create_app, serve, start
from tillbridge.sandbox.settings import (
    AppSeed,
    CommunitySeed,
    MerchantSeed,
    SandboxSettings,
    StoreSeed,
)
from tillbridge.sandbox.state_file import UnusableStateError

__all__ = [
    "AppSeed",
    "CommunitySeed",
    "MerchantSeed",
    "RunningSandbox",
    "SandboxSettings",
    "StoreSeed",
    "UnusableStateError",
    "create_app",
    "serve",
    "start",
]
