"""One delivery: check, verify, commit, acknowledge.

An answer other than 2xx makes the service send the delivery again, so nothing is refused but what
can never be right, or what cannot be committed now. Its age is no reason.
"""

import asyncio
import hmac
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from aiohttp import web
from pydantic_core import from_json

from tillbridge.config import ReceiverSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.core.metrics import Metrics
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import Delivery
from tillbridge.receiver.connections import SERVER, trust
from tillbridge.receiver.refusals import Refusals
from tillbridge.stores.vault import WebhookSecret, counting

log = get_logger()

_LONGEST_ID = 200
_LONGEST_NAME = 512
_LARGE_BODY = 65_536  # bytes; an order has a few thousand
_LARGE_BODIES = 32 * 1_048_576  # bytes of large bodies on their way at a time
_PATIENCE_S = 5.0  # with a signature that may be of a secret on its way; the sender waits 10 s


# -- signatures (specification: Events, Transport, X-Service-Signature)


def matches(body: bytes, signature: str, secrets: Iterable[bytes]) -> list[bool]:
    """For each of `secrets`: whether `signature` is the lowercase hex HMAC-SHA256 of the raw body.

    Takes the same time whichever bytes differ; whatever else stands in the header is False.
    """
    given = signature.encode("ascii") if signature.isascii() else b""
    return [
        hmac.compare_digest(hmac.digest(secret, body, "sha256").hex().encode("ascii"), given)
        for secret in secrets
    ]


# -- envelopes (specification: Events, POS envelope and Community envelope)


class NotAnEnvelope(ValueError):
    """The body is no JSON, or not the envelope of an event. The text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What the receiver has to know of a delivery; ids are "" where it tells none."""

    event_type: str
    event_id: str
    store_id: str
    location_id: str
    community_id: str = ""


def read_envelope(body: bytes) -> Envelope:
    """Return the envelope around an event; what the event says is for others to judge.

    Needs `event_type`, `event_id` and `data`. Raises NotAnEnvelope.
    """
    event = _json(body)
    if not isinstance(event, dict):
        raise NotAnEnvelope("the body is not an object")
    if "data" not in event:
        raise NotAnEnvelope("the field data is missing")
    return Envelope(
        event_type=_name(event, "event_type"),
        event_id=_name(event, "event_id"),
        store_id=_id(event.get("store_id")),
        location_id=_id(event.get("location_id")),
        community_id=_id(event.get("community_id")),
    )


def _json(body: bytes) -> Any:  # noqa: ANN401 -- any JSON value
    try:
        return from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        pass  # stricter than it has to be: a byte order mark, half of a surrogate pair
    try:
        return _decoder.decode(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        # No cause: a body may hold a customer's data, and this goes into a log.
        raise NotAnEnvelope("the body is not JSON") from None


def _name(event: dict[str, Any], field: str) -> str:
    value = event.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        raise NotAnEnvelope(f"the field {field} is missing or no text")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no database takes
        raise NotAnEnvelope(f"the field {field} is no text") from None
    return value


def _id(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_decoder = json.JSONDecoder(parse_constant=_refuse)  # NaN and Infinity are no JSON


# -- deliveries


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the deliveries of a store, or of a community, are checked by.

    `store_id` is "" while it is not known. A store has no community's id, and the other way round.
    `location_id` counts for secrets that name none of their own.
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


class Deliveries:
    """Receives deliveries for the stores and communities in `endpoints`, by the end of the path.

    A store's is its name, a community's is `communities/` and its name; no name holds a slash.
    """

    def __init__(
        self,
        settings: ReceiverSettings,
        ledger: Ledger,
        refusals: Refusals,
        *,
        clock: Clock,
        wake: Callable[[str], None],
        success_status: int,
    ) -> None:
        self.metrics = Metrics()
        self.endpoints: dict[str, Endpoint] = {}
        self._expected: dict[str, asyncio.Event] = {}
        self._settings = settings
        self._ledger = ledger
        self._refusals = refusals
        self._clock = clock
        self._wake = wake
        self._success_status = success_status
        self._large_bodies = 0  # bytes
        # Resolved once: making a logger for each delivery costs as much as verifying it.
        self._log = log.bind()

    def expect(self, store: str) -> None:
        """Let deliveries with an unknown signature wait a moment: a new secret is on its way."""
        self._expected.setdefault(store, asyncio.Event())

    def expect_no_more(self, store: str) -> None:
        """Look again at those that wait, and let no more wait."""
        expected = self._expected.pop(store, None)
        if expected is not None:
            expected.set()

    async def receive(self, request: web.BaseRequest, store: str) -> web.Response:
        """Answer one delivery.

        success_status: it is on disk, now or since before. 400 no JSON or no envelope. 401 the
        signature is not one of this store's secrets (of which there are none before it is
        connected), or the body is another store's. 404 no such store. 408 the body came too
        slowly. 411, 413, 415 no length, too long, encoded or no JSON by its type. 503 the ledger
        cannot be written, or too many large bodies are on their way.
        """
        endpoint = self.endpoints.get(store)
        if endpoint is None:
            # Its name is the sender's invention, and stays out of the log.
            self._refusals.refused("", "no_such_store")
            self.metrics.deliveries.labels(store="", result="no_such_store").inc()
            return _refusal(404)
        try:
            delivery = await self._check(request, store, endpoint)
            new = await self._ledger.deliver(delivery)
        except _Refused as refused:
            self._refusals.refused(store, refused.reason, refused.detail)
            self.metrics.deliveries.labels(store=store, result=refused.reason).inc()
            return _refusal(refused.status)
        except LedgerError as failure:
            self._refusals.refused(store, "ledger_unwritable", failure.text)
            self.metrics.deliveries.labels(store=store, result="ledger_unwritable").inc()
            return _refusal(503, body_read=True)
        self._log.debug(
            "delivery.received",
            store=store,
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            delivery=delivery.delivery_id,
            new=new,
        )
        self.metrics.deliveries.labels(store=store, result="new" if new else "known").inc()
        if new:
            self._wake(store)
        return web.Response(status=self._success_status, headers=SERVER)

    async def _check(self, request: web.BaseRequest, store: str, endpoint: Endpoint) -> Delivery:
        self._check_head(request)
        body = await self._body(request)
        headers = request.headers
        now = self._clock.now_ms()
        signature = headers.get("X-Service-Signature", "")
        signer = self._signer(endpoint, body, signature)
        if signer is None and store in self._expected:
            endpoint = await self._once_refreshed(store)
            signer = self._signer(endpoint, body, signature)
        if signer is None:
            self._refusals.bad_signature(store, looks_real=_looks_real(body, endpoint))
            raise _Refused(401, "signature" if endpoint.secrets else "no_secret_yet")
        self._refusals.good_signature(store)
        trust(request)
        try:
            envelope = read_envelope(body)
        except NotAnEnvelope as failure:
            raise _Refused(400, "no_envelope", str(failure)) from None
        if _is_of_another_store(envelope, endpoint, signer):
            raise _Refused(401, "another_store")
        return Delivery(
            store=store,
            delivery_id=_plain_text(headers.get("X-Service-Delivery-Id", "")),
            event_id=envelope.event_id,
            event_type=envelope.event_type,
            received_at=now,
            body=body,
        )

    def _signer(self, endpoint: Endpoint, body: bytes, signature: str) -> WebhookSecret | None:
        old_secret_s = self._settings.old_secret_s
        secrets = counting(endpoint.secrets, self._clock.now_ms(), old_secret_s=old_secret_s)
        found = matches(body, signature, [each.secret.encode() for each in secrets])
        return next((each for each, match in zip(secrets, found, strict=True) if match), None)

    async def _once_refreshed(self, store: str) -> Endpoint:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._expected[store].wait()
        except TimeoutError:
            pass
        return self.endpoints[store]

    def _check_head(self, request: web.BaseRequest) -> None:
        length = request.content_length
        headers = request.headers
        if length is None or "Transfer-Encoding" in headers:
            raise _Refused(411, "no_length")
        if length > self._settings.max_body_bytes:
            raise _Refused(413, "too_long")
        if headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise _Refused(415, "encoded")
        if "Content-Type" in headers and not _is_json(request.content_type):
            raise _Refused(415, "not_json")

    async def _body(self, request: web.BaseRequest) -> bytes:
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        content = request.content
        if content.is_eof():  # as a rule it has come with the head
            return content.read_nowait()
        # Anybody may send a body, and only at its end is it known whose it was.
        length = request.content_length or 0
        large = length if length > _LARGE_BODY else 0
        if large and self._large_bodies + large > _LARGE_BODIES:
            raise _Refused(503, "too_many_large_bodies")
        self._large_bodies += large
        try:
            async with asyncio.timeout(self._settings.body_timeout_s):
                return await content.read()
        except TimeoutError:
            raise _Refused(408, "slow_body") from None
        except (web.RequestPayloadError, ConnectionError):
            raise _Refused(400, "broken_off") from None
        finally:
            self._large_bodies -= large


def _is_json(content_type: str) -> bool:
    return content_type == "application/json" or content_type.endswith("+json")


def _looks_real(body: bytes, endpoint: Endpoint) -> bool:
    """Whether the service could have sent it: it names the store's id, which no stranger knows."""
    try:
        envelope = read_envelope(body)
    except NotAnEnvelope:
        return False
    told = envelope.store_id or envelope.community_id
    return bool(told) and told in {endpoint.store_id, endpoint.community_id}


def _is_of_another_store(envelope: Envelope, endpoint: Endpoint, signer: WebhookSecret) -> bool:
    """Whether the body names another store than the one whose secret signed it."""
    return any(
        told and known and told != known
        for told, known in (
            (envelope.store_id, endpoint.store_id),
            (envelope.location_id, signer.location_id or endpoint.location_id),
            (envelope.community_id, endpoint.community_id),
        )
    )


def _plain_text(header: str) -> str:
    return header.encode("ascii", "backslashreplace").decode("ascii")[:_LONGEST_ID]


def _refusal(status: int, *, body_read: bool = False) -> web.Response:
    """Answer a refusal; the connection ends, since what follows on it may be a body nobody read."""
    answer = web.Response(status=status, headers=SERVER)
    if not body_read:
        answer.force_close()
    return answer
