"""How an emulated Odoo takes orders: `create_from_ui` of 17, `sync_from_ui` of 18 and 19."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import uuid4

from tillbridge_odoo.emulated.faults import OdooFault, no_field, user_error
from tillbridge_odoo.emulated.store import Store, Values, stamp

_LINE = "pos.order.line"
_CENT = Decimal("0.0001")
_AMOUNTS = ("price_subtotal", "price_subtotal_incl")
# What 17 keeps of an order from its point of sale; the key it stands under there.
_STORED_17 = {
    "user_id": "user_id",
    "session_id": "pos_session_id",
    "pos_reference": "name",
    "sequence_number": "sequence_number",
    "partner_id": "partner_id",
    "fiscal_position_id": "fiscal_position_id",
    "amount_paid": "amount_paid",
    "amount_total": "amount_total",
    "amount_tax": "amount_tax",
    "amount_return": "amount_return",
}
_MAY_BE_LEFT_OUT_17 = (
    "to_invoice",
    "is_tipped",
    "tip_amount",
    "access_token",
    "ticket_code",
    "last_order_preparation_change",
    "pricelist_id",
    "table_id",
    "customer_count",
)


class Sales:
    """The methods of `pos.order`.

    `seen` are the orders that a transaction sees: those that were there when it began, None for
    all. One that waits for a lock sees nothing of what others write meanwhile.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seen: frozenset[int] | None = None

    def create_from_ui(self, orders: Sequence[Values], draft: bool = False) -> list[Values]:  # noqa: FBT001, FBT002 -- as Odoo has it
        """Take orders as 17 does."""
        written = []
        for order in orders:
            data = order["data"]
            server_id = data.get("server_id")
            existing = [
                each for each in self._with(id=server_id) if server_id and each["state"] == "draft"
            ]
            if server_id and not existing and draft:
                continue
            if not existing:
                same = self._with(pos_reference=data["name"])
                existing = [each for each in same if each["state"] == "draft"]
                if not existing and any(self._is_the_same(data, each) for each in same):
                    continue
            written.append(self._process_17(data, existing[0] if existing else None, draft=draft))
        return [
            {"id": each, "pos_reference": self._order(each)["pos_reference"], "account_move": False}
            for each in written
        ]

    def sync_from_ui(self, orders: Sequence[Values]) -> dict[str, Any]:
        """Take orders as 18 and 19 do."""
        written = []
        for order in orders:
            existing = self._open_order(order)
            if existing is None or existing["state"] == "draft":
                written.append(self._process(dict(order), existing))
            else:
                written.append(existing["id"])
        names = ("id", "name", "state", "uuid", "pos_reference")
        found = [{name: self._order(each)[name] for name in names} for each in written]
        return {"pos.order": found, "pos.session": [], "pos.payment": [], "pos.order.line": []}

    def action_pos_order_cancel(
        self, ids: Sequence[int], context: Mapping[str, Any] | None = None
    ) -> bool | dict[str, Any]:
        """Cancel: 17 whatever it is given, 18 drafts; 19 asks that they are the active ones."""
        if self.store.version >= 19 and not (context or {}).get("active_ids"):
            return {"pos.order": []}
        for each in ids:
            if self.store.version == 17 or self._order(each)["state"] == "draft":
                self.store.set("pos.order", each, state="cancel")
        return True if self.store.version == 17 else {"pos.order": []}

    def refund(self, ids: Sequence[int]) -> dict[str, Any]:
        """Make a refund of what is not refunded yet: a second order, to be paid out.

        It has the same receipt number up to 18, and one of its own in 19.
        """
        refunds = []
        for each in ids:
            order = self._order(each)
            config = self.store.record("pos.config", order["config_id"])
            sessions = [
                session["id"]
                for session in self.store.all("pos.session")
                if session["config_id"] == config["id"] and session["state"] == "opened"
            ]
            if not sessions:
                raise user_error(
                    f"To return product(s), you need to open a session in the POS {config['name']}"
                )
            values = {
                "name": f"{order['name']} REFUND",
                "session_id": sessions[-1],
                "config_id": config["id"],
                "pos_reference": order["pos_reference"],
                "state": "draft",
            }
            if self.store.version >= 19:
                values["pos_reference"] = f"260-1-{len(self.store.all('pos.order')):06}"
                values["is_refund"] = True
            if self.store.version >= 18:
                values["uuid"] = str(uuid4())
            refunds.append(self.store.add("pos.order", **values))
            self._take_back(each, refunds[-1])
        return {"type": "ir.actions.act_window", "res_model": "pos.order", "res_id": refunds[0]}

    def _take_back(self, order: int, refund: int) -> None:
        lines = [
            line
            for line in self.lines(order)
            if self.store.value(_LINE, line, "refunded_qty") < line["qty"]
        ]
        for line in lines:
            left = line["qty"] - self.store.value(_LINE, line, "refunded_qty")
            amounts = {name: -line[name] * left / line["qty"] for name in _AMOUNTS}
            values = {"product_id": line["product_id"], "price_unit": line["price_unit"], **amounts}
            self._add_line(refund, {**values, "qty": -left, "refunded_orderline_id": line["id"]})
        taken = self.lines(refund)
        total = sum((line["price_subtotal_incl"] for line in taken), 0)
        tax = total - sum((line["price_subtotal"] for line in taken), 0)
        self.store.set("pos.order", refund, amount_total=total, amount_tax=tax)

    # What the tests do as staff

    def pay(self, order: int, method: int) -> None:
        """Settle a draft."""
        self._pay(order, self._order(order)["amount_total"], method)
        self._finish(order)

    def draft_on_table(self, session: int, table: int, product: int) -> int:
        """Write what a waiter orders at a table."""
        number = self.store.add(
            "pos.order",
            name="/",
            state="draft",
            pos_reference="Order 00001-001-0001",
            session_id=session,
            config_id=self.store.record("pos.session", session)["config_id"],
            table_id=table,
        )
        if self.store.version >= 18:
            self.store.set("pos.order", number, uuid=str(uuid4()))
        self._add_line(number, {"product_id": product, "qty": 1, "price_unit": 1.0})
        return number

    # 17

    def _process_17(self, data: Values, existing: Values | None, *, draft: bool) -> int:
        session = self.store.record("pos.session", data["pos_session_id"])
        if session["state"] in {"closed", "closing_control"}:
            data = {**data, "pos_session_id": self._rescue(session)}
        values = {name: data[key] for name, key in _STORED_17.items()}
        values |= {name: data[name] for name in _MAY_BE_LEFT_OUT_17 if name in data}
        values["date_order"] = str(data["date_order"]).replace("T", " ")[:19]
        lines = data["lines"]
        if existing is None:
            self._check_products([line[2] for line in lines])
            number = self._create(values)
        else:
            number = existing["id"]
            self._clear_lines(number)
            self.store.set("pos.order", number, **values)
        there = self.store.fields(_LINE)
        for line in lines:
            stored = {
                name: value
                for name, value in line[2].items()
                if name in there and name not in {"id", "combo_parent_id", "combo_line_ids"}
            }
            self._add_line(number, stored)
        self._link_17(number, lines)
        for payment in data["statement_ids"]:
            self._pay(number, **_paid(payment[2]))
        if not draft:
            self._finish(number)
        return number

    def _link_17(self, order: int, lines: Sequence[Any]) -> None:
        linked = [
            line[2]
            for line in lines
            if line[2].get("combo_parent_id") or line[2].get("combo_line_ids")
        ]
        uuids = {line["id"]: line["uuid"] for line in linked}
        numbers = {line["uuid"]: line["id"] for line in self.lines(order)}
        for line in linked:
            if line.get("combo_parent_id"):
                self._link(numbers[line["uuid"]], numbers[uuids[line["combo_parent_id"]]])

    def _rescue(self, session: Values) -> int:
        return self.store.add(
            "pos.session",
            name=f"(RESCUE FOR {session['name']})",
            state="opened",
            config_id=session["config_id"],
            rescue=True,
        )

    def _is_the_same(self, data: Values, existing: Values) -> bool:
        paid = sorted(
            (each["amount"], each["payment_method_id"]) for each in self.payments(existing["id"])
        )
        wanted = sorted(
            (each[2]["amount"], each[2]["payment_method_id"]) for each in data["statement_ids"]
        )
        if any(each not in paid for each in wanted):
            return False
        lines = sorted(
            (each["product_id"], each["price_unit"]) for each in self.lines(existing["id"])
        )
        return lines == sorted(
            (each[2]["product_id"], each[2]["price_unit"]) for each in data["lines"]
        )

    # 18 and 19

    def _open_order(self, order: Values) -> Values | None:
        config = self._config_of(order["session_id"])
        for each in reversed(self._visible()):
            if each["uuid"] == order["uuid"]:
                return each
            on_table = order.get("table_id") and each["table_id"] == order["table_id"]
            drafts = each["state"] == order["state"] == "draft"
            if config["module_pos_restaurant"] and on_table and drafts:
                return each
        return None

    def _process(self, order: Values, existing: Values | None) -> int:
        draft = order["state"] == "draft"
        session = self.store.record("pos.session", order["session_id"])
        if session["state"] in {"closed", "closing_control"}:
            raise user_error(
                "No open session available. Please open a new session to capture the order."
            )
        mapping = order.pop("relations_uuid_mapping", {}) if self.store.version >= 19 else {}
        lines, payments = order.pop("lines"), order.pop("payment_ids", [])
        links = self._links_18(lines) if self.store.version == 18 else []
        self._check_products([line[2] for line in lines])
        if existing is None:
            number = self._create(self._of_new(order))
        else:
            number = existing["id"]
            del order["uuid"], order["access_token"]
            self.store.set("pos.order", number, **{k: v for k, v in order.items() if k != "name"})
        for line in lines:
            self._add_line(number, line[2])
        numbers = {line["uuid"]: line["id"] for line in self.lines(number)}
        for parent, children in links:
            for child in children:
                self._link(numbers[child], numbers[parent])
        for child, linked in mapping.get(_LINE, {}).items():
            self._link(numbers[child], numbers[linked["combo_parent_id"]])
        for payment in payments:
            self._pay(number, **_paid(payment[2]))
        if not draft:
            self.store.set("pos.order", number, state="draft")
            self._finish(number)
        return number

    def _of_new(self, order: Values) -> Values:
        values = {name: value for name, value in order.items() if name != "name"}
        if self.store.version == 18:
            values["pos_reference"] = order.get("name")
        elif values.get("pos_reference") is None:
            values["pos_reference"] = "2601-001-000001"
        return values

    def _links_18(self, lines: Sequence[Any]) -> list[tuple[str, list[str]]]:
        found = []
        for line in lines:
            values = line[2]
            if children := values.get("combo_line_ids"):
                uuids = [each[2]["uuid"] for each in lines if each[2].get("id") in children]
                found.append((values["uuid"], uuids))
            values["combo_line_ids"], values["combo_parent_id"] = [], False
        return found

    # Both

    def lines(self, order: int) -> list[Values]:
        """Return the lines of an order."""
        return [each for each in self.store.all(_LINE) if each["order_id"] == order]

    def payments(self, order: int) -> list[Values]:
        """Return the payments of an order."""
        return [each for each in self.store.all("pos.payment") if each["pos_order_id"] == order]

    def _order(self, number: int) -> Values:
        return self.store.record("pos.order", number)

    def _config_of(self, session: int) -> Values:
        config: int = self.store.record("pos.session", session)["config_id"]
        return self.store.record("pos.config", config)

    def _with(self, **wanted: object) -> list[Values]:
        return [
            each
            for each in self._visible()
            if all(each[name] == value for name, value in wanted.items())
        ]

    def _visible(self) -> list[Values]:
        return [
            each
            for each in self.store.all("pos.order")
            if self.seen is None or each["id"] in self.seen
        ]

    def _create(self, values: Values) -> int:
        taken = {each["uuid"] for each in self.store.all("pos.order")} if "uuid" in values else ()
        if self.store.version == 19 and values["uuid"] in taken:
            raise OdooFault(
                "odoo.exceptions.ValidationError", "An order with this uuid already exists"
            )
        config = self._config_of(values["session_id"])["id"]
        given = {name: value for name, value in values.items() if name != "date_order"}
        return self.store.add(
            "pos.order",
            **{"name": "/", "state": "draft", **given, "config_id": config},
            date_order=values.get("date_order") or stamp(),
        )

    def _add_line(self, order: int, values: Values) -> None:
        stored = {name: value for name, value in values.items() if name != "id"}
        for name in stored:
            if name not in self.store.fields(_LINE):
                raise no_field(_LINE, name)
        taken = {line["uuid"] for line in self.store.all(_LINE) if line["uuid"]}
        if self.store.version == 19 and stored.get("uuid") in taken:
            raise OdooFault(
                "odoo.exceptions.ValidationError",
                "The operation cannot be completed: unique constraint pos_order_line_unique_uuid",
            )
        for name in ("tax_ids", "attribute_value_ids"):
            if name in stored:
                stored[name] = _linked(stored[name])
        line = self.store.add(_LINE, **{**stored, "order_id": order})
        self._order(order)["lines"] = [*self._order(order)["lines"], line]

    def _clear_lines(self, order: int) -> None:
        for line in self.lines(order):
            self.store.remove(_LINE, line["id"])
        self._order(order)["lines"] = []

    def _link(self, child: int, parent: int) -> None:
        self.store.set(_LINE, child, combo_parent_id=parent)
        record = self.store.record(_LINE, parent)
        record["combo_line_ids"] = [*record["combo_line_ids"], child]

    def _check_products(self, lines: Sequence[Values]) -> None:
        there = {each["id"] for each in self.store.all("product.product")}
        if any(line["product_id"] not in there for line in lines):
            raise OdooFault(
                "psycopg2.errors.InFailedSqlTransaction",
                "current transaction is aborted, commands ignored until end of transaction block\n",
            )

    def _pay(self, order: int, amount: float, method: int, transaction: str = "") -> None:
        self.store.record("pos.payment.method", method)
        payment = self.store.add(
            "pos.payment",
            pos_order_id=order,
            amount=amount,
            payment_method_id=method,
            transaction_id=transaction,
        )
        record = self._order(order)
        record["payment_ids"] = [*record["payment_ids"], payment]
        record["amount_paid"] = sum(each["amount"] for each in self.payments(order))

    def _finish(self, order: int) -> None:
        """Count an order as paid where all of it is; else it stays a draft, as in Odoo."""
        record = self._order(order)
        open_amount = Decimal(str(record["amount_total"])) - Decimal(str(record["amount_paid"]))
        if abs(open_amount) < _CENT:
            self.store.set("pos.order", order, state="paid", name=f"Shop/{order:04}")


def _paid(values: Values) -> Values:
    return {
        "amount": values["amount"],
        "method": values["payment_method_id"],
        "transaction": values.get("transaction_id", ""),
    }


def _linked(commands: Any) -> list[int]:  # noqa: ANN401 -- commands of Odoo's, or plain numbers
    found: list[int] = []
    for command in commands or ():
        if isinstance(command, int):
            found.append(command)
        elif command[0] == 6:
            found = list(command[2])
        elif command[0] == 4:
            found.append(command[1])
    return found
