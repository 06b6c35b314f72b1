"""One delivery: check, verify, commit, acknowledge.

Any answer other than 2xx makes the service send the delivery again, so only what can never be
right, or cannot be committed now, is refused. Age is no reason to refuse.
"""

import asyncio
import contextlib
import hmac
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, NoReturn

from aiohttp import web
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from tillbridge.config.bridge import ReceiverSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.core.metrics import Metrics
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import NewDelivery
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.ledger.vault import WebhookSecret, counting, webhook_secrets
from tillbridge.receiver.connections import ACKNOWLEDGED, SERVER, trust

log = get_logger()

_LONGEST_ID = 200
_LARGE_BODY = 65_536  # bytes; an order has a few thousand
_LARGE_BODIES = 32 * 1_048_576  # bytes of large bodies in transfer at a time
_PATIENCE_S = 5.0  # for a signature with a secret that may arrive soon; the sender waits 10 s
_LOG_EVERY_S = 60.0
_SEVERAL = 3
_WITHIN_S = 600.0
_REPORT_EVERY_S = 10.0  # a flood of refusals must not become a flood of writes
_DAY_S = 86_400.0
ALL_REFUSED = "receiver.all_refused"
COMMUNITIES = "communities/"  # prefix of the last part of a community's path
_BAD_SIGNATURE = "receiver.bad_signature"
_COMMUNITY_SIGNATURE = "community.bad_signature"


# -- signatures (specification: Events, Transport, X-Service-Signature)


def signer_of(
    body: bytes, signature: str, secrets: Iterable[WebhookSecret]
) -> WebhookSecret | None:
    """Return the secret for which `signature` is the lowercase hex HMAC-SHA256 of the raw body.

    Takes the same time whichever bytes differ, and whichever secret it is; None for any other
    header value.
    """
    given = signature.encode("ascii") if signature.isascii() else b""
    found = None
    for each in secrets:
        right = hmac.digest(each.secret.encode(), body, "sha256").hex().encode("ascii")
        if hmac.compare_digest(right, given):
            found = found or each
    return found


# -- envelopes (specification: Events, POS envelope and Community envelope)


class NotAnEnvelope(ValueError):
    """The body is not JSON, or not the envelope of an event. The text says what is wrong."""


Name = Annotated[str, Field(strict=True, min_length=1, max_length=512)]
Id = Annotated[str, BeforeValidator(lambda value: "" if value is None else str(value))]


class Envelope(BaseModel):
    """What the receiver needs to know about a delivery; missing ids are ""."""

    model_config = ConfigDict(frozen=True)

    event_type: Name
    event_id: Name
    store_id: Id = ""
    location_id: Id = ""
    community_id: Id = ""
    data: Any = Field(repr=False)  # its content is checked elsewhere


def read_envelope(body: bytes) -> Envelope:
    """Return the envelope around an event.

    Needs `event_type`, `event_id` and `data`. Raises NotAnEnvelope.
    """
    try:
        event = from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        event = _leniently(body)
    try:
        return Envelope.model_validate(event)
    except ValidationError as failure:
        place = failure.errors(include_input=False, include_context=False)[0]["loc"]
    # No cause: a body may contain customer data, and this goes into a log.
    wrong = f"the field {place[0]} is missing or no text" if place else "the body is not an object"
    raise NotAnEnvelope(wrong)


def _leniently(body: bytes) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the value of JSON with a byte order mark, or with half of a surrogate pair."""
    try:
        return _decoder.decode(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise NotAnEnvelope("the body is not JSON") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_decoder = json.JSONDecoder(parse_constant=_refuse)  # NaN and Infinity are not JSON


# -- refusals


@dataclass(slots=True)
class _Bad:
    """Refused signatures of one path since the last good one. Times are monotonic."""

    times: deque[float] = field(default_factory=lambda: deque(maxlen=_SEVERAL))
    count: int = 0
    real: int = 0  # those with a body that the service could have sent
    last_ms: int = 0
    reported_at: float | None = None


class Refusals:
    """Counts refusals by store and reason: a log that cannot be flooded, and a problem."""

    def __init__(self, tracker: ProblemTracker, clock: Clock) -> None:
        self._tracker = tracker
        self._clock = clock
        self._logged: dict[tuple[str, str], float] = {}
        self._unlogged: Counter[tuple[str, str]] = Counter()
        self._bad: dict[str, _Bad] = {}
        self._good: set[str] = set()  # the paths whose last delivery had a good signature

    def refused(self, store: str, reason: str, detail: str = "") -> None:
        """Log it, or count it if the same kind was logged within the last minute."""
        key = (store, reason)
        now = self._clock.monotonic()
        if now - self._logged.get(key, float("-inf")) < _LOG_EVERY_S:
            self._unlogged[key] += 1
            return
        self._logged[key] = now
        others = self._unlogged.pop(key, 0)
        log.warning("delivery.refused", store=store, reason=reason, detail=detail, others=others)

    def bad_signature(self, store: str, *, looks_real: bool) -> None:
        """Record a signature that does not match: several within ten minutes are a problem.

        `looks_real`: the service could have sent the body. If the latest of those were all refused,
        no order arrives.
        """
        now = self._clock.monotonic()
        self._good.discard(store)
        bad = self._bad.setdefault(store, _Bad())
        bad.times.append(now)
        bad.count += 1
        bad.real += looks_real
        bad.last_ms = self._clock.now_ms()
        several = len(bad.times) == _SEVERAL and now - bad.times[0] <= _WITHIN_S
        reported = any(self._tracker.is_open(code, store) for code in _codes(store))
        if not several and bad.real < _SEVERAL and not reported:
            return
        recent = bad.reported_at is not None and now - bad.reported_at < _REPORT_EVERY_S
        if not recent or bad.real == _SEVERAL:
            bad.reported_at = now
            self._report(store, bad)

    def good_signature(self, store: str) -> None:
        """Record a signature that matches: the secret is right after all."""
        if store not in self._good:
            self._good.add(store)
            self._bad.pop(store, None)
            self._tracker.report(Scope(store, _codes(store)), ())

    async def close_stale(self) -> None:
        """End what is only about strangers who have not come again for a day; call it hourly."""
        now = self._clock.monotonic()
        for each in self._tracker.current():
            if each.code not in {_BAD_SIGNATURE, _COMMUNITY_SIGNATURE}:
                continue
            bad = self._bad.setdefault(each.store, _Bad())
            if not bad.times:  # from before this start
                bad.times.append(now)
            if now - bad.times[-1] >= _DAY_S:
                self._bad.pop(each.store)
                self._tracker.report(Scope.of_one(each.code, each.store), ())

    def _report(self, store: str, bad: _Bad) -> None:
        last = datetime.fromtimestamp(bad.last_ms / 1000).astimezone()
        all_refused = bad.real >= _SEVERAL
        detail: dict[str, object] = {
            "count": bad.real if all_refused else bad.count,
            "last": f"{last:%Y-%m-%d %H:%M:%S}",
        }
        codes = _codes(store)
        if _COMMUNITY_SIGNATURE in codes:
            code = _COMMUNITY_SIGNATURE
            detail["community"] = store.partition("/")[2]
        else:
            code = ALL_REFUSED if all_refused else _BAD_SIGNATURE
        self._tracker.report(Scope(store, codes), [Found(code, detail=detail)])


def _codes(path: str) -> frozenset[str]:
    """Return the problems for a webhook path: a store's, or a community's."""
    community = path.startswith(COMMUNITIES)
    return frozenset({_COMMUNITY_SIGNATURE} if community else {_BAD_SIGNATURE, ALL_REFUSED})


# -- deliveries


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the deliveries of a store, or of a community, are checked against.

    `store_id` is "" while it is unknown. A store has no community id, and vice versa. `location_id`
    applies to secrets that have none of their own.
    """

    secrets: tuple[WebhookSecret, ...]
    store_id: str = ""
    location_id: str = ""
    community_id: str = ""


class _Refused(Exception):
    """The delivery is refused with this status; `reason` is for the log, not for the sender."""

    def __init__(self, status: int, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.detail = detail


@dataclass(slots=True)
class Deliveries:
    """Receives deliveries for stores and communities, by the last part of the path.

    For a store it is the store's name, for a community `communities/` and its name; names contain
    no slash. `ids` are the location ids of stores, and the ids of communities.
    """

    settings: ReceiverSettings
    ids: Mapping[str, str]
    ledger: Ledger
    refusals: Refusals
    clock: Clock
    metrics: Metrics
    wake: Callable[[str], None]
    success_status: int
    _endpoints: dict[str, Endpoint] = field(default_factory=dict)
    _expected: dict[str, asyncio.Event] = field(default_factory=dict)
    _large_bodies: int = 0  # bytes
    # Resolved once: each delivery would otherwise pay for it as for being verified.
    _log: Any = field(default_factory=log.bind)
    _counters: dict[tuple[str, bool], Any] = field(default_factory=dict)

    async def refresh(self, path: str) -> None:
        """Read again what a path's deliveries are checked against: call it when a secret changes.

        Deliveries that wait for the secret are checked again.
        """
        secrets, own_id = webhook_secrets(self.ledger.vault, path), self.ids[path]
        if path.startswith(COMMUNITIES):
            self._endpoints[path] = Endpoint(secrets, community_id=own_id)
        else:
            store_id = await self.ledger.get_fact(path, "service_store_id", str)
            self._endpoints[path] = Endpoint(secrets, store_id or "", own_id)
        if (expected := self._expected.pop(path, None)) is not None:
            expected.set()

    def expect(self, path: str) -> None:
        """Let deliveries with an unknown signature wait a moment: a new secret will arrive."""
        self._expected.setdefault(path, asyncio.Event())

    async def receive(self, request: web.BaseRequest, store: str) -> web.Response:
        """Answer one delivery.

        success_status: it is on disk, now or already before. 400 not JSON or not an envelope. 401
        the signature does not match this store's secrets (there are none before it is connected),
        or the body is another store's. 404 no such store. 408 the body came too slowly. 411, 413,
        415 no length, too long, encoded or not declared as JSON. 503 the database cannot be
        written, or too many large bodies are in transfer.
        """
        endpoint = self._endpoints.get(store)
        if endpoint is None:
            # The sender made up its name, so it stays out of the log.
            return self._refused("", _Refused(404, "no_such_store"))
        try:
            delivery = await self._check(request, store, endpoint)
            new = await self.ledger.write(delivery)
        except _Refused as refused:
            return self._refused(store, refused)
        except LedgerError as failure:
            return self._refused(store, _Refused(503, "ledger_unwritable", failure.text))
        self._log.debug(
            "delivery.received",
            store=store,
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            delivery=delivery.delivery_id,
            new=new,
        )
        if (counter := self._counters.get((store, new))) is None:
            counter = self.metrics.deliveries.labels(store, "new" if new else "known")
            self._counters[store, new] = counter
        counter.inc()
        if new:
            self.wake(store)
        if self.success_status == HTTPStatus.OK:
            return ACKNOWLEDGED
        return web.Response(status=self.success_status, headers=SERVER)

    def _refused(self, store: str, refused: "_Refused") -> web.Response:
        """Answer a refusal; unless the body was read, the connection ends: it may follow on it."""
        self.refusals.refused(store, refused.reason, refused.detail)
        self.metrics.deliveries.labels(store=store, result=refused.reason).inc()
        answer = web.Response(status=refused.status, headers=SERVER)
        if refused.reason != "ledger_unwritable":
            answer.force_close()
        return answer

    async def _check(self, request: web.BaseRequest, store: str, endpoint: Endpoint) -> NewDelivery:
        body = await self._body(request)
        headers = request.headers
        now, old_secret_s = self.clock.now_ms(), self.settings.old_secret_s
        signature = headers.get("X-Service-Signature", "")
        secrets = counting(endpoint.secrets, now, old_secret_s=old_secret_s)
        signer = signer_of(body, signature, secrets)
        if signer is None and store in self._expected:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await self._expected[store].wait()
            endpoint = self._endpoints[store]
            secrets = counting(endpoint.secrets, self.clock.now_ms(), old_secret_s=old_secret_s)
            signer = signer_of(body, signature, secrets)
        if signer is None:
            self.refusals.bad_signature(store, looks_real=_looks_real(body, endpoint))
            raise _Refused(401, "signature" if endpoint.secrets else "no_secret_yet")
        self.refusals.good_signature(store)
        trust(request)
        try:
            envelope = read_envelope(body)
        except NotAnEnvelope as failure:
            raise _Refused(400, "no_envelope", str(failure)) from None
        # It must not name another store than the one whose secret signed it.
        for named, known in (
            (envelope.store_id, endpoint.store_id),
            (envelope.location_id, signer.location_id or endpoint.location_id),
            (envelope.community_id, endpoint.community_id),
        ):
            if named and known and named != known:
                raise _Refused(401, "another_store")
        delivery_id = headers.get("X-Service-Delivery-Id", "").encode("ascii", "backslashreplace")
        return NewDelivery(
            store,
            delivery_id.decode("ascii")[:_LONGEST_ID],
            envelope.event_id,
            envelope.event_type,
            now,
            body,
        )

    async def _body(self, request: web.BaseRequest) -> bytes:
        """Return the body; only its signature proves where it came from."""
        length, headers = request.content_length, request.headers
        if length is None or "Transfer-Encoding" in headers:
            raise _Refused(411, "no_length")
        if length > self.settings.max_body_bytes:
            raise _Refused(413, "too_long")
        if headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise _Refused(415, "encoded")
        # Only the type counts; aiohttp would parse parameters too, which fails for some of them.
        kind = headers.get("Content-Type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise _Refused(415, "not_json")
        content = request.content
        if content.is_eof():  # it usually comes with the head
            return content.read_nowait()
        if headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        large = length if length > _LARGE_BODY else 0
        if large and self._large_bodies + large > _LARGE_BODIES:
            raise _Refused(503, "too_many_large_bodies")
        self._large_bodies += large
        try:
            async with asyncio.timeout(self.settings.body_timeout_s):
                return await content.read()
        except TimeoutError:
            raise _Refused(408, "slow_body") from None
        except (web.RequestPayloadError, ConnectionError):
            raise _Refused(400, "broken_off") from None
        finally:
            self._large_bodies -= large


def _looks_real(body: bytes, endpoint: Endpoint) -> bool:
    """Return whether the service could have sent it: strangers do not know the store's id."""
    try:
        envelope = read_envelope(body)
    except NotAnEnvelope:
        return False
    named = envelope.store_id or envelope.community_id
    return bool(named) and named in {endpoint.store_id, endpoint.community_id}
