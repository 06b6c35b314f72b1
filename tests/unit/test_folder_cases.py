"""Exports of known products and of others, as they come, and what the folder adapter reads."""

from pathlib import Path

from tillbridge.adapter.conformance import case_tests
from tillbridge.pos.folder import ADAPTER

CASES = Path(__file__).resolve().parents[1] / "data" / "folder" / "cases"

test_case = case_tests(ADAPTER, CASES)
