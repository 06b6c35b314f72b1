"""The folder adapter: a till that exports its menu to files and takes orders as files.

It is built in, and the reference for everyone who writes an adapter: it imports the adapter API
and the model, and nothing else of the bridge. Begin with `adapter.py`.
"""

from tillbridge.pos.folder.adapter import ADAPTER

__all__ = ["ADAPTER"]
