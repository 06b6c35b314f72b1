"""A restaurant: what it says about itself, and its tables.

Specification: Store settings body; Resources, Table. None is what it leaves open: the service keeps
what it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Address:
    """Where the restaurant is."""

    street: str | None = None
    city: str | None = None
    state: str | None = None
    country: str | None = None
    zip: str | None = None


@dataclass(frozen=True, slots=True)
class DeliveryTerms:
    """How it delivers; `minimum` and `fee` in minor units, `radius_km` as decimal text."""

    enabled: bool | None = None
    minimum: int | None = None
    fee: int | None = None
    radius_km: str | None = None


@dataclass(frozen=True, slots=True)
class Restaurant:
    """The store's settings; `pass_through` is sent as it stands (JSON values)."""

    name: str | None = None
    description: str | None = None
    image: str | None = None
    phone: str | None = None
    email: str | None = None
    address: Address = Address()
    delivery: DeliveryTerms = DeliveryTerms()
    pass_through: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the POS knows it. `seats` is None where the POS does not say."""

    external_id: str
    name: str
    seats: int | None = None
    zone: str = ""
