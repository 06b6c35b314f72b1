"""The reference part of docs/service-library.md, made of the code: run this file to renew it."""

import inspect
import re
from pathlib import Path

from tillbridge.service.client import MenuCalls, OrderCalls, StoreCalls
from tillbridge.service.community_calls import CommunityCalls
from tillbridge.service.oauth import OAuth, Signup

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/service-library.md"
MARK = "<!-- reference: made by `python -m tests.support.service_reference` -->\n"
# Where an object of the class is found, given a `ServiceLink` called `link`.
GROUPS: tuple[tuple[str, type, str], ...] = (
    ("link.signup()", Signup, "Onboarding"),
    ("link.oauth", OAuth, "Tokens"),
    ("store.client", StoreCalls, "Stores and integrations"),
    ("store.client", MenuCalls, "Menus, items and tables"),
    ("store.client", OrderCalls, "Orders"),
    ("CommunityCalls(link.app(audience=...).caller, community_id)", CommunityCalls, "Communities"),
)


def endpoints() -> dict[str, list[str]]:
    """The endpoints of each `Class.method`, as docs/specification.md has them."""
    found: dict[str, list[str]] = {}
    page = (ROOT / "docs/specification.md").read_text("utf-8")
    for endpoint, code in re.findall(
        r"^\| `((?:GET|POST|PUT|PATCH|DELETE) [^`]+)`[^|]*\|([^|]+)\|", page, re.MULTILINE
    ):
        for symbol in re.findall(r"\[`([\w.]+)`\]\(\.\./src/tillbridge/service/", code):
            found.setdefault(symbol, []).append(endpoint)
    return found


def reference() -> str:
    """The tables of all calls."""
    known = endpoints()
    parts = []
    for found_at, kind, title in GROUPS:
        parts.append(f"### {title}: `{found_at}`\n\n| call | endpoint | what |\n|---|---|---|\n")
        for name, method in vars(kind).items():
            if name.startswith("_") or not inspect.isfunction(method):
                continue
            told = ", ".join(f"`{each}`" for each in known.get(f"{kind.__name__}.{name}", ()))
            first = inspect.cleandoc(method.__doc__ or "").split("\n\n")[0].replace("\n", " ")
            names = ", ".join(list(inspect.signature(method).parameters)[1:])
            parts.append(f"| `{name}({names})` | {told} | {first} |\n")
        parts.append("\n")
    return "".join(parts)


def renewed(page: str) -> str:
    """The page with a reference as the code has it."""
    before, _mark, _old = page.partition(MARK)
    return before + MARK + "\n" + reference().rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
