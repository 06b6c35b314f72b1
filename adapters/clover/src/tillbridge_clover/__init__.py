"""The adapter for clover."""

from tillbridge_clover.adapter import ADAPTER

__all__ = ["ADAPTER"]
