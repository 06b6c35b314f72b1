"""Tables of the floor plan. Specification: Resources, Table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the POS knows it. `seats` is None where the POS does not say."""

    external_id: str
    name: str
    seats: int | None = None
    zone: str = ""
