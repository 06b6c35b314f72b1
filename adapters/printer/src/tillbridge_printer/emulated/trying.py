"""Trying the adapter on an emulated printer: orders, opened adapters, waiting with a deadline."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tillbridge.adapter import AdapterContext, Order
from tillbridge.model.order import parse_order
from tillbridge_printer.adapter import ADAPTER, PrinterAdapter


def order_of(order_id: str = "ord_1", **more: Any) -> Order:  # noqa: ANN401 -- fields of an order
    """Return an order of two soups; `more` are fields of the service's order."""
    line = {"product_name": "Soup", "quantity": 2, "external_id": "s1", "subtotal": 900}
    order = {"id": order_id, "order_number": "7", "currency": "EUR", "items": [line]}
    return parse_order(order | more)


def opened(folder: Path, printer: str, **options: Any) -> PrinterAdapter:  # noqa: ANN401 -- options of many kinds
    """Return the adapter with these options. Raises ValueError as opening does."""
    checked = ADAPTER.options.model_validate({"printer": printer, "timeout_s": 3} | options)
    pos = ADAPTER.open(checked, AdapterContext("main", "EUR", "loc", folder))
    if not isinstance(pos, PrinterAdapter):
        raise TypeError("this is no printer")
    return pos


def until(condition: Callable[[], object], deadline_s: float = 10) -> None:
    """Wait for a condition. Raises TimeoutError."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.01)
