"""What a shell offers after <Tab>: stores, orders, items, communities, codes of problems.

Quick and silent: the file and the ledger are read as they are, without checks, models or a daemon,
and whatever is wrong with them, nothing is offered.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

Offer = list[tuple[str, str]]  # a word, and what some shells show beside it

_AT_MOST = 100
_AT_MOST_DAYS = 14
_ORDERS = (
    "SELECT CASE WHEN order_number <> '' AND order_number LIKE ? ESCAPE '\\' THEN order_number"
    " ELSE order_id END, order_id FROM orders"
    " WHERE order_id LIKE ? ESCAPE '\\' OR order_number LIKE ? ESCAPE '\\'"
    " ORDER BY received_at DESC LIMIT ?"
)
_QUARTER_MS = 900_000  # where days begin, in every time zone
_QUARTERS = "SELECT DISTINCT received_at / ?, '' FROM orders ORDER BY 1 DESC LIMIT ?"
_ITEMS = (
    "SELECT external_id, body FROM menu_items WHERE store = ? AND external_id LIKE ? ESCAPE '\\'"
    " ORDER BY external_id LIMIT ?"
)
_COMMUNITY_ITEMS = (
    "SELECT record_id, name FROM community_records WHERE community = ? AND kind = 'item'"
    " AND record_id LIKE ? ESCAPE '\\' ORDER BY record_id LIMIT ?"
)
_OPEN_CODES = "SELECT DISTINCT code, '' FROM problems ORDER BY code"


def _quietly(offer: Callable[[typer.Context, str], Offer]) -> Callable[[typer.Context, str], Offer]:
    def quiet(context: typer.Context, incomplete: str) -> Offer:
        try:
            return offer(context, incomplete)
        except Exception:  # noqa: BLE001 -- a traceback in the middle of somebody's command line
            return []

    return quiet


@_quietly
def stores(context: typer.Context, incomplete: str) -> Offer:
    """Offer the stores of the configuration."""
    return _of_table(context, "stores", incomplete)


@_quietly
def communities(context: typer.Context, incomplete: str) -> Offer:
    """Offer the communities of the configuration."""
    return _of_table(context, "communities", incomplete)


@_quietly
def orders(context: typer.Context, incomplete: str) -> Offer:
    """Offer the latest orders."""
    like = _like(incomplete)
    return _rows(context, _ORDERS, like, like, like, _AT_MOST)


@_quietly
def days(context: typer.Context, incomplete: str) -> Offer:
    """Offer the days of the latest orders, newest first."""
    # By this machine's days: what a store's zone has otherwise is not worth a slower <Tab>.
    rows = _rows(context, _QUARTERS, _QUARTER_MS, _AT_MOST_DAYS * 96)
    begun = [datetime.fromtimestamp(int(each) * _QUARTER_MS // 1000) for each, _rest in rows]  # noqa: DTZ006 -- by this machine's clock, as said
    known = list(dict.fromkeys(f"{each:%Y-%m-%d}" for each in begun))[:_AT_MOST_DAYS]
    return [(day, "") for day in ("today", *known) if day.startswith(incomplete)]


@_quietly
def items(context: typer.Context, incomplete: str) -> Offer:
    """Offer the items of the store typed before."""
    store = str(context.params.get("store") or "")
    rows = _rows(context, _ITEMS, store, _like(incomplete), _AT_MOST)
    return [(item, str(json.loads(body).get("name") or "")) for item, body in rows]


@_quietly
def community_items(context: typer.Context, incomplete: str) -> Offer:
    """Offer the items of the community typed before."""
    key = f"communities/{context.params.get('community') or ''}"
    return _rows(context, _COMMUNITY_ITEMS, key, _like(incomplete), _AT_MOST)


@_quietly
def codes(_context: typer.Context, incomplete: str) -> Offer:
    """Offer the codes of all problems."""
    from tillbridge.core.problems import PROBLEMS

    return [(code, kind.text) for code, kind in PROBLEMS.items() if code.startswith(incomplete)]


@_quietly
def open_codes(context: typer.Context, incomplete: str) -> Offer:
    """Offer the codes of problems that are open."""
    from tillbridge.core.problems import PROBLEMS

    return [
        (code, PROBLEMS[code].text if code in PROBLEMS else "")
        for code, _nothing in _rows(context, _OPEN_CODES)
        if code.startswith(incomplete)
    ]


def _of_table(context: typer.Context, table: str, incomplete: str) -> Offer:
    _path, configured = _configured(context)
    names = configured.get(table)
    known = names if isinstance(names, dict) else {}
    return [(name, "") for name in known if name.startswith(incomplete)]


def _configured(context: typer.Context) -> tuple[Path, Mapping[str, Any]]:
    from tillbridge.config.toml import find_file, read_file

    path = find_file(context.find_root().params.get("config_file"))
    return path, read_file(path)[1]


def _rows(context: typer.Context, query: str, *values: object) -> Offer:
    from tillbridge.config.toml import data_dir_of
    from tillbridge.ledger.reading import place_of, reading

    path, configured = _configured(context)
    place = place_of(path, data_dir_of(path, dict(configured)), configured)
    with reading(place.path, place.url, patience_s=0.2) as execute:
        return [(str(word), str(beside)) for word, beside in execute(query, values)]


def _like(begin: str) -> str:
    for special in "\\%_":
        begin = begin.replace(special, f"\\{special}")
    return f"{begin}%"
