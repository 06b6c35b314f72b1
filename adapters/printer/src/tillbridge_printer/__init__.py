"""The adapter for receipt printers."""

from tillbridge_printer.adapter import ADAPTER

__all__ = ["ADAPTER"]
