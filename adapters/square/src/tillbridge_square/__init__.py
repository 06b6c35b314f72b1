"""The adapter for square."""

from tillbridge_square.adapter import ADAPTER

__all__ = ["ADAPTER"]
