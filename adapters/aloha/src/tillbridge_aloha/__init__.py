"""The adapter for aloha."""

from tillbridge_aloha.adapter import ADAPTER

__all__ = ["ADAPTER"]
