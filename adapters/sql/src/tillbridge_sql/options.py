"""The options of the adapter: the keys of its table in bridge.toml."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from tillbridge.adapter.sale_options import PriceOptions, SaleOptions
from tillbridge.adapter.secrets import Secret

Profile = Literal["unicenta", "chromis", "floreant"]


class SqlOptions(SaleOptions, PriceOptions):
    """Which database, what is asked of it, and what may be changed in it."""

    url: str = Field(
        min_length=1,
        title="Address of the database",
        description="Where the database is, without the password: postgresql://user@host/name.",
    )
    password: Secret | None = Field(
        None,
        title="Password",
        description="The user's password: { file = ... }, { env = ... } or { credential = ... }.",
    )
    profile: Profile | None = Field(
        None,
        title="Kind of till",
        description="The kind of till, whose queries come with the adapter.",
    )
    queries: Path | None = Field(
        None,
        title="File of queries",
        description="A file of named queries; over those of the profile, or all there are.",
    )
    parameters: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        title="Parameters of the queries",
        description="Further parameters of the queries, by name.",
    )
    orders: bool = Field(
        False,  # noqa: FBT003 -- pydantic wants the default first
        title="Write orders",
        description="Whether orders are written; without it every session is read-only.",
    )
    tax_included: bool = Field(
        True,  # noqa: FBT003 -- pydantic wants the default first
        title="Prices include tax",
        description="Whether the menu's prices hold the tax; the parameter :tax_included.",
    )
    change: Literal["query", "notify"] = Field(
        "query",
        title="How changes are noticed",
        description="How changes are noticed: by the query fingerprint, or by PostgreSQL's NOTIFY.",
    )
    channel: str = Field(
        "tillbridge",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$",
        title="Channel",
        description='The channel that is listened to, with change = "notify".',
    )
    timeout_s: float = Field(
        5,
        gt=0,
        le=60,
        title="Time for an answer (s)",
        description="How long the database may take to answer, in seconds.",
    )
    dump: Path | None = Field(
        None,
        title="File of SQL to try",
        description='A file of SQL to try queries on, with url = "sqlite://"; not a till.',
    )
