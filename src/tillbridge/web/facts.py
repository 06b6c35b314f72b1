"""What the status is told of, read live by the daemon or from the ledger without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.snapshot import FailedStart, StoreFigures, StoreSnapshot


@dataclass(frozen=True, slots=True)
class BridgeFacts:
    """The bridge and its stores at one moment. Instants are ms since the epoch.

    `adapters` names the configured stores, each with its adapter; `stores` is what the ledger
    knows of them. `communities` names the configured ones, each with its id; the ledger has them
    among the stores, by their keys. `pid` and `started_at` count only while the bridge is running,
    `stopped_at` only while it is not. `facts` are those of the bridge itself; `pos_seen` tells, by
    store, when the till was last found there; `figures`, by store, how well its orders go;
    `tills`, by store, its adapters: `name`, `level`, and `part` where it has one of two.
    `failed_start` is the last start, where that failed; `last_delivery_at` of any store.
    """

    version: str
    running: bool
    adapters: Mapping[str, str]
    stores: Mapping[str, StoreSnapshot] = field(default_factory=dict)
    problems: Sequence[OpenProblem] = ()
    pid: int | None = None
    started_at: int | None = None
    stopped_at: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    pos_seen: Mapping[str, int] = field(default_factory=dict)
    communities: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, StoreFigures] = field(default_factory=dict)
    tills: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    failed_start: FailedStart | None = None
    last_delivery_at: int | None = None
