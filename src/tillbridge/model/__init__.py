"""Frozen values of the field: money, instants, the catalogue, orders, tables."""
