"""The adapter for tills that keep their data in an SQL database."""

from tillbridge_sql.adapter import ADAPTER

__all__ = ["ADAPTER"]
