"""Writes static/icons.svg: `python -m tests.support.icon_sprite FOLDER [NAME ...]`.

FOLDER is the unpacked npm package `lucide-static` (`npm pack lucide-static`). The icons that are
there already are written again, and those that are named are added.
"""

import re
import sys
from pathlib import Path

from tillbridge.web.rendering import STATIC

SPRITE = STATIC / "icons.svg"
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg">
<!-- Icons of Lucide {version}, ISC, see icons-LICENSE.txt. By tests/support/icon_sprite.py. -->
"""


def names() -> list[str]:
    """Return the icons that the sprite has."""
    text = SPRITE.read_text("utf-8") if SPRITE.exists() else ""
    return re.findall(r'<symbol id="([a-z0-9-]+)"', text)


def symbol(folder: Path, name: str) -> str:
    """Return an icon as a symbol of the sprite; how lines are drawn is the style sheet's."""
    text = (folder / "icons" / f"{name}.svg").read_text("utf-8")
    inner = re.search(r"<svg[^>]*>(.*)</svg>", text, re.DOTALL)
    assert inner is not None
    drawn = "".join(line.strip() for line in inner[1].splitlines())
    return f'<symbol id="{name}" viewBox="0 0 24 24">{drawn}</symbol>\n'


def main(folder: Path, more: list[str]) -> None:
    """Write the sprite."""
    version = re.search(r'"version": "([^"]+)"', (folder / "package.json").read_text("utf-8"))
    assert version is not None
    symbols = [symbol(folder, name) for name in sorted({*names(), *more})]
    SPRITE.write_text(_HEAD.format(version=version[1]) + "".join(symbols) + "</svg>\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
