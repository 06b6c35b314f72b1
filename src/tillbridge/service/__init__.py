"""The typed client of the ordering service, over one retry policy: the specification's table.

A library of its own: it needs neither the daemon nor the ledger. See docs/service-library.md.
"""

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
from tillbridge.service.client import AppLink, OrderBodies, ServiceClient, ServiceLink, StoreLink
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
