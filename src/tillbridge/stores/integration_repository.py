"""What is stored about a store's integration: facts in the ledger, secrets in the vault.

A sequence of several calls is recorded before the first of them, so that nothing stays half done
after a crash or an outage of the service: it is resumed.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sqlalchemy import Connection

from tillbridge.core.context import StoreContext
from tillbridge.ledger.facts import all_facts, drop_fact, get_fact, put_fact
from tillbridge.ledger.pushes import INTEGRATION_MADE
from tillbridge.ledger.vault import (
    WebhookSecret,
    describe_webhook_secret,
    end_webhook_secrets,
    forget_webhook_secrets,
    prove_writable,
    store_webhook_secret,
    webhook_secrets,
)
from tillbridge.service.types import Integration, IntegrationRequest
from tillbridge.stores.integration_plan import IntegrationPlan, Kind, State

_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Intent:
    """What was begun: `make` an integration, `replace` it, `rotate` its secret, or `remove` it.

    `was` is the id of the previous integration; `closed` says that the storefront was closed for
    this and has to be opened again.
    """

    kind: Literal["make", "replace", "rotate", "remove"]
    was: str | None = None
    closed: bool = False


@dataclass(frozen=True, slots=True)
class IntegrationFacts:
    """What is stored about an integration, read in one go.

    `intent` was begun and is not finished; `store_id` is the store's at the service, None until it
    was integrated from here or chosen; `acknowledged` is the integration as the service last
    accepted it; `removed` says that a person disconnected the store, `restored_lately` that a
    change made elsewhere was undone within a day. `secret` is the newest one.
    """

    intent: Intent | None
    store_id: str | None
    acknowledged: Mapping[str, Any]
    removed: bool
    restored_lately: bool
    secret: WebhookSecret | None

    def secret_known(self, now: Integration) -> bool:
        """Return whether this integration's secret is stored here."""
        if self.secret is None or self.secret.ended_ms is not None:
            return False
        ours = self.secret.integration_id or self.acknowledged.get("integration_id")
        return not ours or not now.integration_id or ours == now.integration_id


class IntegrationRepository:
    """One store's integration. Everything is on disk on return; raises LedgerError."""

    def __init__(self, context: StoreContext) -> None:
        self._store = context.store
        self._ledger = context.bridge.ledger
        self._clock = context.bridge.clock
        self._old_secret_s = context.bridge.settings.receiver.old_secret_s

    async def facts(self) -> IntegrationFacts:
        """Return what is stored of the integration."""

        def read(db: Connection) -> IntegrationFacts:
            restored = get_fact(db, self._store, "integration_restored", dict)
            age_ms = None if restored is None else self._clock.now_ms() - restored["at"]
            return IntegrationFacts(
                intent=get_fact(db, self._store, "integration_intent", Intent),
                store_id=get_fact(db, self._store, "service_store_id", str),
                acknowledged=get_fact(db, self._store, "integration", dict) or {},
                removed=get_fact(db, self._store, "integration_removed") is not None,
                restored_lately=age_ms is not None and 0 <= age_ms < _DAY_MS,
                secret=next(iter(webhook_secrets(self._ledger.vault, self._store)), None),
            )

        return await self._ledger.read(read)

    # -- in progress

    async def begin(self, intent: Intent) -> None:
        """Record what is begun, after making sure that a secret can be stored."""
        await self.prove_writable()
        await self._put("integration_intent", intent)

    async def prove_writable(self) -> None:
        """Raise LedgerUnwritable now, not after a secret was returned."""
        await self._in_vault(prove_writable, at_ms=self._clock.now_ms())

    async def finished(self) -> None:
        """Record that nothing is in progress."""
        await self._ledger.drop_fact(self._store, "integration_intent")

    # -- secrets

    async def store_secret(self, secret: str, integration: Integration, location_id: str) -> None:
        """Store a secret that is returned once; `location_id` if its answer names none."""
        await self._in_vault(
            store_webhook_secret,
            secret=secret,
            at_ms=self._clock.now_ms(),
            integration_id=integration.integration_id or "",
            location_id=integration.external_store_id or location_id,
        )

    async def forget_old_secrets(self) -> None:
        """Delete secrets that are no longer valid."""
        await self._in_vault(
            forget_webhook_secrets, now_ms=self._clock.now_ms(), old_secret_s=self._old_secret_s
        )

    # -- the state

    async def note(
        self,
        store_id: str,
        now: Integration,
        wanted: IntegrationRequest,
        *,
        secret_known: bool,
        made: bool = False,
    ) -> None:
        """Record an integration as the service has it; missing fields are as requested.

        `made`: this bridge has just created it, so it is not the previous one.
        """
        if secret_known:
            await self._in_vault(
                describe_webhook_secret,
                integration_id=now.integration_id or "",
                location_id=now.external_store_id or wanted.external_store_id,
            )
        at = self._clock.now_ms()
        answered = {name: value for name, value in asdict(now).items() if value not in {None, ""}}
        answered.pop("store_id", None)
        fact = {
            "integration_id": None,
            **asdict(wanted),
            "status": "active",
            "connected_at": at,
            **answered,
        }
        secret = self._secret_fact() if secret_known else None

        def write(db: Connection) -> None:
            put_fact(db, self._store, "service_store_id", store_id, at=at)
            put_fact(db, self._store, "integration", fact, at=at)
            put_fact(db, self._store, "webhook_secret", secret, at=at)
            if made:
                put_fact(db, self._store, INTEGRATION_MADE, {"at": at}, at=at)
            drop_fact(db, self._store, "integration_removed")

        await self._ledger.write(write)

    async def note_removed(self) -> None:
        """Record that a person disconnected the store; its secret stays valid for a while."""
        at = self._clock.now_ms()
        await self._in_vault(end_webhook_secrets, at_ms=at)

        def write(db: Connection) -> None:
            put_fact(db, self._store, "integration_removed", {"at": at}, at=at)
            put_fact(db, self._store, "webhook_secret", self._secret_fact(), at=at)
            for name in ("integration", "integration_plan", "integration_intent"):
                drop_fact(db, self._store, name)

        await self._ledger.write(write)

    async def note_seen(self, plan: IntegrationPlan) -> None:
        """Record the integration as found, and what is still to be done."""
        at = self._clock.now_ms()
        secret = self._secret_fact()

        def write(db: Connection) -> None:
            known = get_fact(db, self._store, "integration")
            if known is not None:
                status = "active" if plan.state is State.INTEGRATED else str(plan.state)
                if status != known.get("status"):
                    fact = {**known, "status": status}
                    put_fact(db, self._store, "integration", fact, at=at)
            pending = None if plan.kind is Kind.NOTHING else plan.to_json()
            put_fact(db, self._store, "integration_plan", pending, at=at)
            put_fact(db, self._store, "integration_checked", {"at": at}, at=at)
            if secret != get_fact(db, self._store, "webhook_secret"):
                put_fact(db, self._store, "webhook_secret", secret, at=at)

        await self._ledger.write(write)

    async def note_choice(self, store_id: str) -> None:
        """Record which store of the merchant a person chose."""
        await self._put("service_store_id", store_id)

    async def taken_by(self, store_id: str) -> str | None:
        """Return which other store of this bridge uses that one, or None."""
        facts = await self._ledger.read(all_facts)
        for store, known in facts.items():
            taken = known.get("service_store_id") == store_id and "integration" in known
            if taken and store != self._store:
                return store
        return None

    async def note_store_name(self, name: str) -> None:
        """Record the store's name at the service, for printing."""
        await self._put("service_store_name", name)

    async def note_restored(self) -> None:
        """Record that a change made elsewhere was undone now."""
        await self._put("integration_restored", {"at": self._clock.now_ms()})

    # -- inside

    def _secret_fact(self) -> dict[str, Any] | None:
        secrets = webhook_secrets(self._ledger.vault, self._store)
        if not secrets:
            return None
        newest, *older = secrets
        ended = newest.ended_ms if newest.ended_ms is not None else newest.since_ms
        counts = bool(older) or newest.ended_ms is not None
        until = ended + round(self._old_secret_s * 1000) if counts else None
        return {"since_ms": newest.since_ms, "old_until_ms": until}

    async def _in_vault(self, change: Callable[..., object], **values: object) -> None:
        await asyncio.to_thread(change, self._ledger.vault, self._store, **values)

    async def _put(self, name: str, value: object) -> None:
        at = self._clock.now_ms()
        await self._ledger.put_fact(self._store, name, value, at=at)
