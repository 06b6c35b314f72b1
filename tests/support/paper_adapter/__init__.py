"""An honest adapter for the paper till: it passes every check of the conformance suite."""

from tests.support.paper_adapter.adapter import ADAPTER, PaperAdapter, PaperOptions

__all__ = ["ADAPTER", "PaperAdapter", "PaperOptions"]
