"""Printers that are not there: for the conformance suite, tests, and trying a layout."""
