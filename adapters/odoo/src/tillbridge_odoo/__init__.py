"""The adapter for Odoo."""

from tillbridge_odoo.adapter import ADAPTER

__all__ = ["ADAPTER"]
