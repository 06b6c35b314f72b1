"""An emulated Odoo as a whole: its records, its methods, and what can be asked over RPC."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tillbridge_odoo.emulated.faults import OdooFault, access_denied, no_database, no_model
from tillbridge_odoo.emulated.sales import Sales
from tillbridge_odoo.emulated.store import Store

DATABASE, LOGIN, KEY, UID = "pos", "bridge", "key-of-the-bridge", 2


class EmulatedOdoo:
    """One Odoo. `asked` and `contexts` tell what was asked, in order.

    `after` is called when a model has been read, as somebody who works in Odoo meanwhile.
    """

    def __init__(self, version: int = 17) -> None:
        self.version = version
        self.store = Store(version)
        self.sales = Sales(self.store)
        self.key = KEY
        self.asked: list[tuple[str, str]] = []
        self.contexts: list[Mapping[str, Any]] = []
        self.after: dict[str, Callable[[], None]] = {}
        self.busy = 0
        self.busy_creating = 0
        self._late: Callable[[], Any] | None = None
        self.late_wanted = False
        self.logins = 0
        self.language = "en_US"  # of our user

    def seed(self, currency: str = "EUR") -> None:
        """Furnish it: a company, a restaurant with an open session, and how one can pay."""
        add = self.store.add
        add("res.currency", id=1, name=currency)
        rounding = "round_globally" if self.version >= 19 else "round_per_line"
        add(
            "res.company",
            id=1,
            name="Trattoria",
            currency_id=1,
            tax_calculation_rounding_method=rounding,
        )
        add("stock.picking.type", id=1, name="PoS Orders", warehouse_id=1)
        add("pos.payment.method", id=1, name="Cash", type="cash", is_cash_count=True, company_id=1)
        add("pos.payment.method", id=2, name="Bank", type="bank", company_id=1)
        add(
            "pos.config",
            id=1,
            name="Restaurant",
            company_id=1,
            currency_id=1,
            module_pos_restaurant=True,
            payment_method_ids=[1, 2],
            picking_type_id=1,
        )
        self.open_session()

    def open_session(self) -> int:
        """Open the register."""
        number = self.store.add(
            "pos.session", name="POS/1", state="opened", config_id=1, sequence_number=1
        )
        self.store.set("pos.config", 1, current_session_id=number, current_session_state="opened")
        return number

    def seat_online_orders(self) -> None:
        """Make the table "Online" on a floor of its own, for orders that name none."""
        floor = self.store.add("restaurant.floor", name="Online", pos_config_ids=[1])
        label = {"name": "Online"} if self.version == 17 else {"table_number": 99}
        self.store.add("restaurant.table", floor_id=floor, seats=0, **label)
        floors = [*self.store.record("pos.config", 1)["floor_ids"], floor]
        self.store.set("pos.config", 1, floor_ids=floors)

    def close_sessions(self) -> None:
        """Close the register, for the day."""
        for session in self.store.all("pos.session"):
            self.store.set("pos.session", session["id"], state="closed")

    def load(self, path: Path) -> None:
        """Take the records of a case: `{"records": {model: [{"id": 1, ...}]}}`."""
        recorded = json.loads(path.read_text("utf-8"))
        for model, records in recorded["records"].items():
            if any(record.get("id") for record in records):
                self.store.clear(model)
            for record in records:
                self.store.add(model, **record)

    def answer(self, service: str, method: str, args: Sequence[Any]) -> Any:  # noqa: ANN401 -- any JSON value
        """Answer one question. Raises OdooFault."""
        match service, method:
            case "common", "version":
                return {
                    "server_version": f"{self.version}.0",
                    "server_version_info": [self.version, 0, 0, "final", 0, ""],
                    "server_serie": f"{self.version}.0",
                    "protocol_version": 1,
                }
            case "common", "authenticate":
                database, login, key, _agent = args
                self.logins += 1
                if database != DATABASE:
                    raise no_database(database)
                return UID if (database, login, key) == (DATABASE, LOGIN, self.key) else False
            case "object", "execute_kw":
                return self._execute(*args)
        raise OdooFault("builtins.AttributeError", f"Method not found: {service}.{method}")

    def orders_now(self) -> frozenset[int]:
        """Return the orders that a transaction sees that begins now."""
        return frozenset(each["id"] for each in self.store.all("pos.order"))

    def late(self) -> None:
        """Let the next order be written late: after whatever is asked next."""
        self.late_wanted = True

    def settle(self) -> None:
        """Let what is late be written."""
        late, self._late = self._late, None
        if late is not None:
            late()

    def _execute(
        self,
        database: str,
        uid: int,
        key: str,
        model: str,
        method: str,
        args: Sequence[Any],
        named: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 -- any JSON value
        if (database, uid, key) != (DATABASE, UID, self.key):
            raise access_denied()
        if model not in self.store.schema:
            raise no_model(model)
        self.asked.append((model, method))
        self.contexts.append((named or {}).get("context") or {})
        creating = method in {"create_from_ui", "sync_from_ui"}
        if self.busy or (creating and self.busy_creating):
            self.busy = max(0, self.busy - 1)
            self.busy_creating = max(0, self.busy_creating - creating)
            raise OdooFault(
                "psycopg2.errors.SerializationFailure",
                "could not serialize access due to concurrent update\n",
            )
        found = self._methods(model).get(method)
        if found is None:
            raise OdooFault(
                "builtins.AttributeError",
                f"The method '{model}.{method}' does not exist",
            )
        arguments = copy.deepcopy(list(args))
        if creating and self.late_wanted:
            self.late_wanted = False
            self._late = lambda: found(model, *arguments)
            return None
        if not creating:
            return found(model, *arguments, **dict(named or {}))
        with self.store.transaction():
            return found(model, *arguments, **dict(named or {}))

    def _methods(self, model: str) -> dict[str, Callable[..., Any]]:
        methods: dict[str, Callable[..., Any]] = {
            "search": self._search,
            "search_read": self._search_read,
            "fields_get": self._fields_get,
        }
        if model == "pos.order":
            methods["action_pos_order_cancel"] = lambda _model, *args, **named: (
                self.sales.action_pos_order_cancel(*args, **named)
            )
            methods["refund"] = lambda _model, *args, **_named: self.sales.refund(*args)
            if self.version == 17:
                methods["create_from_ui"] = lambda _model, *args, **_named: (
                    self.sales.create_from_ui(*args)
                )
            else:
                methods["sync_from_ui"] = lambda _model, *args, **_named: self.sales.sync_from_ui(
                    *args
                )
        if model == "res.users":
            methods["context_get"] = lambda *_args, **_named: {"lang": self.language, "uid": UID}
        if model == "pos.make.payment":
            # As a real one has it: staff pays at the point of sale, managers in the back office.
            methods["create"] = lambda *_args, **_named: _refuse_wizard()
        return methods

    def _search(self, model: str, domain: Sequence[Any], **named: Any) -> list[int]:  # noqa: ANN401 -- as Odoo has it
        return self.store.search(model, domain, **named)

    def _search_read(
        self,
        model: str,
        domain: Sequence[Any],
        *,
        fields: Sequence[str] = (),
        context: Mapping[str, Any] | None = None,
        **named: Any,  # noqa: ANN401 -- as Odoo has it
    ) -> list[dict[str, Any]]:
        ids = self.store.search(model, domain, context=context, **named)
        found = self.store.read(model, ids, fields, context or {})
        if "write_date" not in fields and model in self.after:
            self.after[model]()
        return found

    def _fields_get(self, model: str, *, attributes: Sequence[str]) -> dict[str, Any]:
        return {
            name: {
                key: value
                for key, value in (
                    ("type", field.type),
                    ("store", field.stored),
                    ("readonly", not field.stored),
                )
                if key in attributes
            }
            for name, field in self.store.fields(model).items()
        }


def _refuse_wizard() -> int:
    raise OdooFault(
        "odoo.exceptions.AccessError",
        "You are not allowed to create 'Point of Sale Make Payment Wizard' (pos.make.payment)"
        " records. This operation is allowed for the following groups: - Point of"
        " Sale/Administrator",
    )
