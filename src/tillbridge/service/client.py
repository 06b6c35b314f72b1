"""The service as one store's merchant may use it: every call, over one policy.

Each method raises ServiceError and nothing else. Calls of all stores share one transport and one
gate, so that orders of any store go before menus of any other.
"""

from tillbridge.service.menu_calls import MenuCalls
from tillbridge.service.order_calls import OrderCalls
from tillbridge.service.store_calls import StoreCalls


class ServiceClient(StoreCalls, MenuCalls, OrderCalls):
    """All calls of one store; see the three groups it is made of."""
