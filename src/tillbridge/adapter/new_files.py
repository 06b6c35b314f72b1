"""Making files where the till's user may write, too: links are never followed. For adapters."""

from tillbridge.core.files import NotOurFolder, create_new, make_own_folder, write_new

__all__ = ["NotOurFolder", "create_new", "make_own_folder", "write_new"]
