"""Every act that a person or program can ask of the bridge, by subject: see `core.operation`.

Importing any of it declares those that commands need, which import the rest where they act. What
only a running bridge is asked for imports at once; the page (`web/site/book.py`) declares it.
"""

from tillbridge.core.operation import OPERATIONS as OPERATIONS
from tillbridge.operations import audit as audit
from tillbridge.operations import communities as communities
from tillbridge.operations import integration as integration
from tillbridge.operations import items as items
from tillbridge.operations import menu as menu
from tillbridge.operations import orders as orders
from tillbridge.operations import problems as problems
from tillbridge.operations import stores as stores
from tillbridge.operations import tables as tables
