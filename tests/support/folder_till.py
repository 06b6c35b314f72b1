"""A till that is a few files, as tests set it up."""

from pathlib import Path

from tillbridge.adapter import AdapterContext
from tillbridge.pos.folder import ADAPTER
from tillbridge.pos.folder.adapter import FolderAdapter


def open_till(folder: Path, **options: object) -> FolderAdapter:
    """The folder adapter with these options, paths counting from `folder`; and a `currency`."""
    currency = str(options.pop("currency", "USD"))
    context = AdapterContext(store="main", currency=currency, location_id="loc-1", base_dir=folder)
    opened = ADAPTER.open(ADAPTER.options.model_validate(options), context)
    assert isinstance(opened, FolderAdapter)
    return opened


def menu_till(folder: Path, content: str | bytes, **options: object) -> FolderAdapter:
    """A till whose menu holds `content` (text is written as UTF-8, line ends as they are)."""
    menu = str(options.pop("menu", "menu.csv"))
    (folder / menu).write_bytes(content.encode() if isinstance(content, str) else content)
    return open_till(folder, menu=menu, **options)
