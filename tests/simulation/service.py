"""An ordering service for the simulation: strict, written from the specification alone.

It shares no code with the bridge or the sandbox. It remembers all that was asked of it, so that the
invariants can be checked against what the world saw.
"""

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

STORE, LOCATION, APP, APP_SECRET = "st_main", "loc-1", "app_123", "app-secret"
REDIRECT = "http://127.0.0.1:8089/oauth/callback"
RETRIES_S = (60.0, 300.0, 1800.0, 7200.0, 21600.0)
REASONS = "ITEM_OUT_OF_STOCK STORE_CLOSED POS_OFFLINE CAPACITY PRICE_MISMATCH OTHER".split()
DIRECTIONS = {"pos_to_quiqqy", "bidirectional"}

_ITEM = set(
    "external_id name description price image_url available categories addon_groups variant_type"
    " variants tax product_type".split()
)
_MENU = {"external_id", "name", "description", "categories", "items", "add_ons", "addon_groups"}
_STEP = {"accept": ("created", "accepted"), "status": ("accepted", "preparing")}
_STEP["ready"] = ("preparing", "ready")
FINAL = {"completed", "cancelled"}


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(code)
        self.status, self.code, self.message = status, code, message or code


@dataclass
class Order:
    id: str
    data: dict[str, Any]
    placed: float
    state: str = "created"
    cancel: dict[str, Any] | None = None
    cancelled_by: str = ""
    history: list[tuple[float, str]] = field(default_factory=list)


@dataclass
class Sending:
    """One event on its way to the bridge."""

    event_id: str
    event_type: str
    body: bytes
    signature: str
    order: str
    attempts: int = 0
    done: bool = False
    next_at: float = 0.0


@dataclass
class Call:
    at: float
    method: str
    path: str
    status: int
    code: str
    body: Any


class Service:
    """The service's state, and its endpoints."""

    def __init__(self, now: Callable[[], float], iso: Callable[[], str]) -> None:
        self._now, self._iso = now, iso
        self.integration: dict[str, Any] | None = None
        self.secret = ""
        self.status = "active"
        self.merchant_closed = False
        self.access: dict[str, float] = {}
        self.refresh: dict[str, float] = {}
        self.codes: set[str] = set()
        self.consent = True
        self.orders: dict[str, Order] = {}
        self.sendings: list[Sending] = []
        self.items: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, set[str]] = {}  # of each item all that was ever accepted
        self.removed: list[tuple[float, str]] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.tables: dict[str, dict[str, Any]] = {}
        self.synced_at = ""
        self.calls: list[Call] = []
        self.number = 0
        self.limited_until = 0.0
        self.limited_calls: list[float] = []
        self.on_change: Callable[[str, dict[str, Any]], None] = lambda _what, _detail: None
        self.token_life_s = 3600.0
        self.small = 100

    # -- the world

    def next_id(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}_{self.number}"

    def place(self, lines: list[dict[str, Any]], **more: Any) -> Order:
        """Let a guest order; the event is to be sent."""
        number = self.next_id("ord")
        total = sum(line["unit_price"] * line["quantity"] for line in lines)
        data = {
            "id": number,
            "order_number": number.removeprefix("ord_"),
            "order_type": "delivery",
            "status": "pending",
            "payment_status": "paid",
            "customer_id": "cus_1",
            "currency": "USD",
            "subtotal": total,
            "tax": 0,
            "delivery_fee": 0,
            "discount": 0,
            "tip": 0,
            "total_amount": total,
            "prices_include_tax": True,
            "tax_breakdown": [],
            "special_instructions": "",
            "created_at": self._iso(),
            "items": lines,
            **more,
        }
        order = self.orders[number] = Order(number, data, self._now())
        if self.integration is not None and self.integration["auto_accept_orders"]:
            self._move(order, "accepted")
        self.emit("order.created", data, number)
        return order

    def complete(self, order: Order) -> None:
        """Let the courier deliver it."""
        if order.state == "ready":
            self._move(order, "completed")
            self.emit("order.delivered", {"order_id": order.id}, order.id)

    def emit(self, event_type: str, data: dict[str, Any], order: str) -> Sending:
        body = json.dumps(
            {
                "event_type": event_type,
                "event_id": self.next_id("evt"),
                "store_id": STORE,
                "location_id": LOCATION,
                "timestamp": self._iso(),
                "data": data,
            }
        ).encode()
        signature = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        sending = Sending(f"evt_{self.number}", event_type, body, signature, order)
        sending.next_at = self._now()
        self.sendings.append(sending)
        return sending

    def consented(self) -> str:
        """Let the merchant consent; return the code of the redirect."""
        self.consent = True
        self.access.clear()
        self.refresh.clear()
        code = self.next_id("code")
        self.codes.add(code)
        return code

    def _move(self, order: Order, state: str) -> None:
        order.state = state
        order.history.append((self._now(), state))
        self.on_change("order", {"order": order.id, "state": state})

    # -- the endpoints

    def answer(
        self, method: str, path: str, authorization: str, body: Any
    ) -> tuple[int, dict[str, str], Any]:
        """Answer one request as the specification has it."""
        headers: dict[str, str] = {}
        try:
            if self._now() < self.limited_until:
                left = self.limited_until - self._now()
                self.limited_calls.append(self._now())
                headers["Retry-After"] = str(int(left) + 1)
                raise Refusal(429, "rate.limited")  # noqa: TRY301 -- as all refusals are
            status, answer = self._answer(method, path.split("/"), authorization, body)
        except Refusal as refusal:
            status = refusal.status
            answer = {"error": {"code": refusal.code, "message": refusal.message}}
        code = answer["error"]["code"] if status >= 400 else ""
        self.calls.append(Call(self._now(), method, path, status, code, body))
        return status, headers, answer

    def _answer(
        self, method: str, path: list[str], authorization: str, body: Any
    ) -> tuple[int, Any]:
        match method, path:
            case "POST", ["oauth2", "token"]:
                return 200, self._token(body)
            case "POST", ["oauth2", "refresh"]:
                return 200, self._refresh(body)
        self._authorised(authorization)
        match method, path:
            case "GET", ["pos", "stores"]:
                return 200, [self._store()]
            case "POST", ["pos", "integrate-store", store]:
                return 200, self._integrate(store, body)
            case "GET", ["pos", "integrations", store]:
                return 200, self._integrated(store)
            case "PUT", ["pos", "integrations", store]:
                _only(
                    body,
                    {
                        "webhook_url",
                        "notification_email",
                        "menu_sync_direction",
                        "auto_accept_orders",
                    },
                )
                link = self._integrated(store)
                link.update(body)
                self.integration = link
                return 200, link
            case "DELETE", ["pos", "integrations", store]:
                self._integrated(store)
                self.integration = None
                return 200, {"status": "success", "message": "removed"}
            case _, ["pos", "orders", order, verb] if method == "POST":
                return 200, self._order(order, verb, body)
            case _, ["pos", "stores", store, *rest]:
                self._integrated(store)
                return self._of_store(method, rest, body)
        raise Refusal(404, "request.not_found")

    def _of_store(  # noqa: C901, PLR0912 -- one case an endpoint
        self, method: str, rest: list[str], body: Any
    ) -> tuple[int, Any]:
        match method, rest:
            case "PUT", ["status"]:
                if body != {"status": body.get("status")} or body["status"] not in {
                    "active",
                    "inactive",
                }:
                    raise Refusal(400, "request.validation")
                self.status = body["status"]
                self.on_change("store", {"status": self.status})
                return 200, {"status": "success", "store_id": STORE, "store_status": self.status}
            case "PUT", ["settings"]:
                return 200, {"status": "success", "message": ""}
            case "GET", ["tax-config"]:
                return 200, {
                    "enabled": False,
                    "tax_level": "store",
                    "pricing_mode": "inclusive",
                    "default_tax_id": "",
                    "taxes": [],
                }
            case "GET", ["menus", "status"]:
                link = self.integration or {}
                return 200, {
                    "store_id": STORE,
                    "menu_sync_direction": link.get("menu_sync_direction"),
                    "integration_status": "active",
                    "last_synced_at": self.synced_at or None,
                }
            case "GET", ["menus", "jobs", job]:
                if job not in self.jobs:
                    raise Refusal(404, "menu.job_not_found")
                found = self.jobs[job]
                if found["status"] == "running" and self._now() >= found["ends"]:
                    self._push(found["body"])
                    found["status"] = "success"
                return 200, {
                    "job_id": job,
                    "store_id": STORE,
                    "status": found["status"],
                    "result": {},
                }
            case "POST", ["menus"]:
                self._may_push()
                return self._menus(body)
            case "POST", ["menus", "batch"]:
                self._may_push()
                return 200, self._batch(body)
            case "POST", ["items", "availability"]:
                return 200, self._availability(body)
            case "PATCH", ["items", item]:
                return 200, self._patch(item, body)
            case "POST", ["tables"]:
                return 200, self._tables(body)
        raise Refusal(404, "request.not_found")

    # -- tokens

    def _token(self, body: Any) -> Any:
        _only(body, {"grant_type", "code", "redirect_uri", "client_id", "client_secret"})
        if (body["client_id"], body["client_secret"]) != (APP, APP_SECRET):
            raise Refusal(401, "auth.invalid_client")
        if body["grant_type"] != "authorization_code" or body["redirect_uri"] != REDIRECT:
            raise Refusal(400, "auth.invalid_grant")
        if body["code"] not in self.codes:
            raise Refusal(400, "auth.invalid_grant")
        self.codes.discard(body["code"])
        refresh = self.next_id("refresh")
        self.refresh[refresh] = self._now() + 7 * 86400
        return {**self._access(), "refresh_token": refresh}

    def _refresh(self, body: Any) -> Any:
        _only(body, {"grant_type", "refresh_token"})
        if not self.consent:
            raise Refusal(403, "auth.consent_revoked")
        if self._now() >= self.refresh.get(body["refresh_token"], 0.0):
            raise Refusal(400, "auth.invalid_grant")
        return self._access()

    def _access(self) -> dict[str, Any]:
        access = self.next_id("access")
        self.access[access] = self._now() + self.token_life_s
        return {
            "token_type": "Bearer",
            "access_token": access,
            "expires_in": int(self.token_life_s),
            "scope": "store.read menu.write orders.write webhooks.write",
        }

    def _authorised(self, authorization: str) -> None:
        token = authorization.removeprefix("Bearer ")
        if token not in self.access or token == authorization:
            raise Refusal(401, "auth.invalid_token")
        if self._now() >= self.access[token]:
            raise Refusal(401, "auth.token_expired")
        if not self.consent:
            raise Refusal(403, "auth.consent_revoked")

    # -- the store

    def _store(self) -> dict[str, Any]:
        link = self.integration
        return {
            "store_id": STORE,
            "name": "Sim",
            "description": None,
            "status": self.status,
            "integration_status": "integrated" if link else "not_integrated",
            "integration": dict(link) if link else None,
        }

    def _integrate(self, store: str, body: Any) -> Any:
        if store != STORE:
            raise Refusal(404, "store.not_found")
        _only(
            body,
            {
                "webhook_url",
                "notification_email",
                "menu_sync_direction",
                "external_store_id",
                "auto_accept_orders",
            },
        )
        if self.integration is not None:
            raise Refusal(409, "integration.already_exists")
        self.secret = self.next_id("whsec")
        self.integration = {
            "integration_id": self.next_id("int"),
            "app_id": APP,
            "store_id": STORE,
            "status": "active",
            "connected_at": self._iso(),
            **body,
        }
        return {**self.integration, "webhook_secret": self.secret}

    def _integrated(self, store: str) -> dict[str, Any]:
        if store != STORE:
            raise Refusal(404, "store.not_found")
        if self.integration is None:
            raise Refusal(404, "store.not_integrated")
        return dict(self.integration)

    # -- orders

    def _order(self, order_id: str, verb: str, body: Any) -> Any:
        if self.integration is None:
            raise Refusal(404, "store.not_integrated")
        order = self.orders.get(order_id)
        if order is None:
            raise Refusal(404, "order.not_found")
        if verb == "cancel":
            _only(body, {"reason", "reason_code", "message"})
            if body["reason_code"] not in REASONS or not isinstance(body["reason"], str):
                raise Refusal(400, "request.validation")
            if order.state in FINAL:
                raise Refusal(409, "order.invalid_transition")
            order.cancel, order.cancelled_by = dict(body), "bridge"
            self._move(order, "cancelled")
            return {
                "status": "success",
                "order_id": order_id,
                "order_status": "cancelled",
                "reason": body["reason"],
                "reason_code": body["reason_code"],
            }
        if verb not in _STEP:
            raise Refusal(404, "request.not_found")
        if verb == "status" and body != {"status": "preparing"}:
            raise Refusal(400, "request.validation")
        if verb != "status" and body not in (None, {}):
            raise Refusal(400, "request.unknown_field")
        before, after = _STEP[verb]
        if order.state != before:
            raise Refusal(409, "order.invalid_transition")
        self._move(order, after)
        return {"status": "success", "order_id": order_id, "order_status": after}

    # -- the menu

    def _may_push(self) -> None:
        if (self.integration or {}).get("menu_sync_direction") not in DIRECTIONS:
            raise Refusal(403, "menu.push_not_allowed")

    def _menus(self, body: Any) -> tuple[int, Any]:
        _only(body, {"menus", "add_ons", "addon_groups"})
        for menu in body.get("menus", ()):
            _only(menu, _MENU)
            for item in menu.get("items", ()):
                _check_item(item)
        count = sum(len(menu.get("items", ())) for menu in body.get("menus", ()))
        if count > self.small:
            job = self.next_id("job")
            self.jobs[job] = {"status": "running", "body": body, "ends": self._now() + 3.0}
            return 202, {
                "status": "accepted",
                "job_id": job,
                "message": "",
                "poll_url": f"/pos/stores/{STORE}/menus/jobs/{job}",
            }
        self._push(body)
        return 200, {"status": "success", "message": "", "data": {"items": count}}

    def _push(self, body: Any) -> None:
        for menu in body.get("menus", ()):
            for item in menu.get("items", ()):
                self._upsert(item)
        self.synced_at = self._iso()
        self.on_change("menu", {})

    def _upsert(self, item: dict[str, Any]) -> None:
        known = self.items.get(item["external_id"], {})
        new = {**known, **item}
        version = f"{new['name']} {new['price']}"
        self.versions.setdefault(item["external_id"], set()).add(version)
        self.items[item["external_id"]] = new
        self.on_change("item", {"id": item["external_id"], "item": new, "before": known})

    def _batch(self, body: Any) -> Any:
        _only(body, {"add", "update", "delete", "categories", "add_ons", "addon_groups"})
        for item in (*body.get("add", ()), *body.get("update", ())):
            _check_item(item)
        for item in (*body.get("add", ()), *body.get("update", ())):
            self._upsert(item)
        deleted = [each for each in body.get("delete", ()) if each in self.items]
        if deleted:
            self.on_change("deletes", {"removed": len(deleted), "known": len(self.items)})
        for each in deleted:
            del self.items[each]
            self.removed.append((self._now(), each))
            self.on_change("removed", {"id": each})
        self.synced_at = self._iso()
        self.on_change("menu", {})
        return {
            "status": "success",
            "message": "",
            "added": len(body.get("add", ())),
            "updated": len(body.get("update", ())),
            "deleted": len(deleted),
        }

    def _availability(self, body: Any) -> Any:
        _only(body, {"items"})
        missing, updated = [], 0
        for each in body["items"]:
            _only(each, {"external_id", "available", "snooze_until"})
            if not isinstance(each["available"], bool):
                raise Refusal(400, "request.validation")
            if each["external_id"] in self.items:
                self.items[each["external_id"]]["available"] = each["available"]
                updated += 1
                self.on_change("available", each)
            else:
                missing.append(each["external_id"])
        return {"status": "success", "message": "", "updated": updated, "not_found": missing}

    def _patch(self, item: str, body: Any) -> Any:
        if item not in self.items:
            raise Refusal(404, "menu.item_not_found")
        _only(body, _ITEM)
        self._upsert({**self.items[item], **body, "external_id": item})
        return {"status": "success", "message": ""}

    def _tables(self, body: Any) -> Any:
        _only(body, {"tables"})
        for each in body["tables"]:
            _only(each, {"external_id", "name", "seats", "zone"})
        self.tables = {each["external_id"]: each for each in body["tables"]}
        return {
            "status": "success",
            "tables": [
                {
                    "external_id": each,
                    "table_id": f"tbl_{each}",
                    "qr_token": f"qrt_{each}",
                    "qr_url": f"https://order.example/{each}",
                }
                for each in self.tables
            ],
        }


def _only(body: Any, fields: set[str]) -> None:
    if not isinstance(body, dict):
        raise Refusal(400, "request.validation", "the body is no object")
    if unknown := sorted(body.keys() - fields):
        raise Refusal(400, "request.unknown_field", f"unknown: {', '.join(unknown)}")


def _check_item(item: Any) -> None:
    _only(item, _ITEM)
    if not isinstance(item.get("external_id"), str) or not isinstance(item.get("name"), str):
        raise Refusal(400, "request.validation", "external_id, name")
    if type(item.get("price")) is not int or item["price"] < 0:
        raise Refusal(400, "request.validation", "price")
    if not isinstance(item.get("available", True), bool):
        raise Refusal(400, "request.validation", "available")
