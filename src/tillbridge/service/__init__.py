"""The typed client of the ordering service, over one retry policy: the specification's table.

A library of its own: it needs neither the daemon nor the ledger. See docs/service-library.md.
Importing it is cheap; each name is loaded when it is first used.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tillbridge.core.errors import (
        Conflict,
        ConsentLost,
        OutcomeUnknown,
        RateLimited,
        Refused,
        ServiceDown,
        ServiceError,
        Unauthorised,
        Unreachable,
    )
    from tillbridge.service.client import OrderBodies, ServiceClient
    from tillbridge.service.community_calls import CommunityCalls
    from tillbridge.service.link import App, AppLink, ServiceLink, StoreLink
    from tillbridge.service.oauth import authorize_url, new_state, same_state
    from tillbridge.service.retry import Limits
    from tillbridge.service.signup import SignupAddress, SignupRequest, SignupUrl
    from tillbridge.service.tokens import AppTokenStore, MemoryTokens, TokenKeeper, TokenStore
    from tillbridge.service.types import Integration, IntegrationRequest, Store, Tokens

_HOMES = {
    "tillbridge.core.errors": (
        "Conflict",
        "ConsentLost",
        "OutcomeUnknown",
        "RateLimited",
        "Refused",
        "ServiceDown",
        "ServiceError",
        "Unauthorised",
        "Unreachable",
    ),
    "tillbridge.service.client": ("OrderBodies", "ServiceClient"),
    "tillbridge.service.community_calls": ("CommunityCalls",),
    "tillbridge.service.link": ("App", "AppLink", "ServiceLink", "StoreLink"),
    "tillbridge.service.oauth": ("authorize_url", "new_state", "same_state"),
    "tillbridge.service.retry": ("Limits",),
    "tillbridge.service.signup": ("SignupAddress", "SignupRequest", "SignupUrl"),
    "tillbridge.service.tokens": ("AppTokenStore", "MemoryTokens", "TokenKeeper", "TokenStore"),
    "tillbridge.service.types": ("Integration", "IntegrationRequest", "Store", "Tokens"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "App",
    "AppLink",
    "AppTokenStore",
    "CommunityCalls",
    "Conflict",
    "ConsentLost",
    "Integration",
    "IntegrationRequest",
    "Limits",
    "MemoryTokens",
    "OrderBodies",
    "OutcomeUnknown",
    "RateLimited",
    "Refused",
    "ServiceClient",
    "ServiceDown",
    "ServiceError",
    "ServiceLink",
    "SignupAddress",
    "SignupRequest",
    "SignupUrl",
    "Store",
    "StoreLink",
    "TokenKeeper",
    "TokenStore",
    "Tokens",
    "Unauthorised",
    "Unreachable",
    "authorize_url",
    "new_state",
    "same_state",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value
