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
    from tillbridge.service.answers import Limits
    from tillbridge.service.client import (
        AppLink,
        OrderBodies,
        ServiceClient,
        ServiceLink,
        StoreLink,
    )
    from tillbridge.service.community_calls import CommunityCalls
    from tillbridge.service.oauth import (
        App,
        SignupAddress,
        SignupRequest,
        SignupUrl,
        authorize_url,
        new_state,
        same_state,
    )
    from tillbridge.service.tokens import (
        AppTokenStore,
        MemoryTokens,
        StoreTokens,
        TokenKeeper,
        TokenStore,
    )
    from tillbridge.service.types import Integration, IntegrationRequest, Store, Tokens

# In the order of their imports; each holds names of `__all__`.
_MODULES = (
    "core.errors",
    "service.answers",
    "service.types",
    "service.tokens",
    "service.oauth",
    "service.client",
    "service.community_calls",
)

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
    "StoreTokens",
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
    for module in _MODULES if name in __all__ else ():
        value: object = getattr(importlib.import_module(f"tillbridge.{module}"), name, None)
        if value is not None:
            globals()[name] = value
            return value
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
