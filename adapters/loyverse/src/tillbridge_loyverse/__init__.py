"""The adapter for loyverse."""

from tillbridge_loyverse.adapter import ADAPTER

__all__ = ["ADAPTER"]
