"""The level that an installed adapter says it reaches, without importing the adapter."""

import importlib.util
import tomllib
from functools import cache
from pathlib import Path

from tillbridge.pos.loader import module_of


def adapters_of(menu: str, orders: str | None) -> list[dict[str, str]]:
    """Return the adapters of a store: `name`, `level`, `part`.

    `part` is "menu" or "orders", or "" where one adapter does both. `level` is bronze, silver,
    gold or none; "" where nothing is said of it.
    """
    if orders is None or orders == menu:
        return [{"name": menu, "level": level_of(menu), "part": ""}]
    return [
        {"name": menu, "level": level_of(menu), "part": "menu"},
        {"name": orders, "level": level_of(orders), "part": "orders"},
    ]


@cache
def level_of(name: str) -> str:
    """Return the level in the quality.toml beside an adapter's package; "" where there is none."""
    module = module_of(name)
    try:
        spec = importlib.util.find_spec(module) if module is not None else None
        if spec is None or spec.origin is None:
            return ""
        text = (Path(spec.origin).parent / "quality.toml").read_text("utf-8")
        return str(tomllib.loads(text).get("level", ""))
    except (OSError, ValueError, ImportError):
        return ""
