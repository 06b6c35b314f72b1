"""The records of an emulated Odoo: found by domains, read as Odoo's JSON says them."""

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tillbridge_odoo.emulated.faults import OdooFault, no_field, no_model, no_record
from tillbridge_odoo.emulated.schema import FieldOf, inherited, schema_of

Values = dict[str, Any]
_MANY = {"many2many", "one2many"}
_EMPTY: Mapping[str, Any] = {"integer": 0, "float": 0.0, "boolean": False}


class Store:
    """All records by model and number. `uninstalled` models are those of modules not there."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.schema = dict(schema_of(version))
        self._inherited = inherited(self.schema)
        of_template = self.schema["product.template"]
        self._of_product = dict(self.schema["product.product"]) | {
            name: of_template[name] for name in self._inherited
        }
        self._records: dict[str, dict[int, Values]] = {}
        self._last: dict[str, int] = {}
        self.translations: dict[tuple[str, str], str] = {}  # by language and name

    def uninstall(self, *models: str) -> None:
        """Take models away, as where the module that brings them is not installed."""
        for model in models:
            del self.schema[model]

    def add(self, model: str, **values: Any) -> int:  # noqa: ANN401 -- any field's value
        """Add a record with these values; return its number."""
        number = int(values.pop("id", 0)) or self._last.get(model, 0) + 1
        self._last[model] = max(number, self._last.get(model, 0))
        record = {name: self._default(each) for name, each in self._fields(model).items()}
        record |= {"id": number, "create_date": stamp(), "write_date": stamp()}
        if "active" in record:
            record["active"] = True
        self._records.setdefault(model, {})[number] = record
        for name, value in values.items():
            if name not in self._fields(model):
                raise no_field(model, name)
            record[name] = value
        return number

    def set(self, model: str, number: int, **values: Any) -> None:  # noqa: ANN401 -- any field's value
        """Write values; as in Odoo, a link between records leaves the record's stamp alone."""
        record = self.record(model, number)
        for name, value in values.items():
            if name not in self._fields(model):
                raise no_field(model, name)
            record[name] = value
            if self._fields(model)[name].type not in _MANY:
                record["write_date"] = stamp()

    def remove(self, model: str, number: int) -> None:
        """Delete a record."""
        del self._records[model][number]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Undo everything where what is done inside fails, as the database does."""
        before = copy.deepcopy(self._records)
        try:
            yield
        except OdooFault:
            self._records = before
            raise

    def clear(self, model: str) -> None:
        """Delete all records of a model."""
        self._records.pop(model, None)

    def record(self, model: str, number: int) -> Values:
        """Return a record as it is stored."""
        found = self._records.get(model, {}).get(number)
        if found is None:
            raise no_record(model, number)
        return found

    def all(self, model: str) -> list[Values]:
        """Return all records of a model by number."""
        return [record for _number, record in sorted(self._records.get(model, {}).items())]

    def fields(self, model: str) -> Mapping[str, FieldOf]:
        """Return the fields of a model, those of a product's template among them."""
        return self._of_product if model == "product.product" else self._fields(model)

    def search(
        self,
        model: str,
        domain: Sequence[Any],
        *,
        order: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        context: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Return the numbers of the records that fit, in order."""
        fits = self._fits(model, domain)
        tested = (context or {}).get("active_test", True) and "active" in self.fields(model)
        named = any(isinstance(term, list | tuple) and term[0] == "active" for term in domain)
        found = [
            record
            for record in self.all(model)
            if (not tested or named or record["active"]) and fits(record)
        ]
        for part in reversed((order or "id").split(",")):
            name, _space, direction = part.strip().partition(" ")
            if name not in self.fields(model):
                raise no_field(model, name)
            found.sort(
                key=partial(self._sorting, model, name),
                reverse=direction.strip().lower() == "desc",
            )
        ids = [record["id"] for record in found][offset:]
        return ids if limit is None else ids[:limit]

    def read(
        self, model: str, ids: Sequence[int], fields: Sequence[str], context: Mapping[str, Any]
    ) -> list[Values]:
        """Return records as Odoo's JSON says them."""
        names = list(fields) or list(self.fields(model))
        return [
            {
                "id": number,
                **{
                    name: self._value_of(model, self.record(model, number), name, context)
                    for name in names
                },
            }
            for number in ids
        ]

    def value(self, model: str, record: Values, name: str) -> Any:  # noqa: ANN401 -- any field's value
        """Return a field's value: stored, worked out, or of the template."""
        if model == "product.product" and name in self._inherited:
            return self.record("product.template", record["product_tmpl_id"])[name]
        if name == "lst_price" and model == "product.product":
            template = self.record("product.template", record["product_tmpl_id"])
            extras = record["product_template_attribute_value_ids"]
            values = (self.record("product.template.attribute.value", each) for each in extras)
            return template["list_price"] + sum(each["price_extra"] for each in values)
        if name == "name" and record.get("product_attribute_value_id"):
            return self.record("product.attribute.value", record["product_attribute_value_id"])[
                name
            ]
        if name == "refunded_qty":
            return -sum(
                line["qty"]
                for line in self.all(model)
                if line["refunded_orderline_id"] == record["id"]
                and self.record("pos.order", line["order_id"])["state"] != "cancel"
            )
        return record[name]

    def label(self, model: str, number: int, context: Mapping[str, Any]) -> str:
        """Return a record's display name."""
        record = self.record(model, number)
        if model == "product.product":
            template = self.record("product.template", record["product_tmpl_id"])
            values = record["product_template_attribute_value_ids"]
            names = [
                self.record("product.template.attribute.value", each)["name"] for each in values
            ]
            code = template["default_code"] if context.get("display_default_code", True) else ""
            kinds = f" ({', '.join(names)})" if names else ""
            name = self._translated(template["name"], context)
            return f"[{code}] {name}{kinds}" if code else f"{name}{kinds}"
        return str(record.get("name") or record.get("table_number") or f"{model},{number}")

    def _value_of(self, model: str, record: Values, name: str, context: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- any JSON value
        fields = self.fields(model)
        if name not in fields:
            raise no_field(model, name)
        if name == "display_name":
            return self.label(model, record["id"], context)
        value, kind = self.value(model, record, name), fields[name].type
        if name == "name":
            value = self._translated(value, context)
        if kind == "many2one" and value:
            target = _TARGETS.get(name)
            target = (
                {"pos.combo.line": "pos.combo", "product.combo.item": "product.combo"}.get(
                    model, ""
                )
                if name == "combo_id"
                else target
            )
            return [value, self.label(target, value, context)] if target else [value, str(value)]
        if kind in {"char", "text", "html", "selection", "datetime", "many2one"}:
            return value or False
        return list(value) if kind in _MANY else value

    def _translated(self, name: str, context: Mapping[str, Any]) -> str:
        return self.translations.get((str(context.get("lang")), name), name)

    def _sorting(self, model: str, name: str, record: Values) -> tuple[int, Any]:
        return _sortable(self.value(model, record, name))

    def _fields(self, model: str) -> Mapping[str, FieldOf]:
        if model not in self.schema:
            raise no_model(model)
        return self.schema[model]

    @staticmethod
    def _default(field: FieldOf) -> Any:  # noqa: ANN401 -- any field's value
        return [] if field.type in _MANY else _EMPTY.get(field.type, False)

    def _fits(self, model: str, domain: Sequence[Any]) -> Callable[[Values], bool]:
        terms = iter(_whole(domain))
        return self._term(model, terms)

    def _term(self, model: str, terms: Iterator[Any]) -> Callable[[Values], bool]:
        term = next(terms)
        match term:
            case True:
                return lambda _record: True
            case "!":
                inner = self._term(model, terms)
                return lambda record: not inner(record)
            case "&" | "|":
                first, second = self._term(model, terms), self._term(model, terms)
                if term == "&":
                    return lambda record: first(record) and second(record)
                return lambda record: first(record) or second(record)
            case [str(name), str(operator), wanted]:
                if name not in self.fields(model):
                    raise OdooFault(
                        "builtins.ValueError",
                        f"Invalid field {model}.{name} in leaf {tuple(term)!r}",
                    )
                test = _test(operator, wanted)
                return lambda record: test(self.value(model, record, name))
        raise OdooFault("builtins.ValueError", f"Invalid leaf {term!r}")


def stamp() -> str:
    """Return now as Odoo writes it: whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")


_TARGETS = {
    "currency_id": "res.currency",
    "company_id": "res.company",
    "config_id": "pos.config",
    "session_id": "pos.session",
    "current_session_id": "pos.session",
    "floor_id": "restaurant.floor",
    "table_id": "restaurant.table",
    "product_tmpl_id": "product.template",
    "product_id": "product.product",
    "attribute_id": "product.attribute",
    "parent_id": "",
}


def _whole(domain: Sequence[Any]) -> list[Any]:
    """Put the `&` that may be left out before a domain's terms."""
    wanted = 1
    found: list[Any] = []
    for term in domain:
        if wanted == 0:
            found.insert(0, "&")
            wanted = 1
        found.append(list(term) if isinstance(term, tuple) else term)
        wanted += {"&": 1, "|": 1, "!": 0}.get(term, -1) if isinstance(term, str) else -1
    if not found:
        return [True]
    if wanted:
        raise OdooFault("builtins.ValueError", f"Domain {list(domain)!r} is not well-formed")
    return found


def _test(operator: str, wanted: Any) -> Callable[[Any], bool]:  # noqa: ANN401 -- any JSON value
    match operator:
        case "=" | "!=":
            return lambda value: _equal(value, wanted) is (operator == "=")
        case "parent_of":  # of companies without branches
            return lambda value: value in wanted
        case "in" | "not in":
            options = frozenset(wanted)
            return lambda value: (
                (bool(options.intersection(value)) if isinstance(value, list) else value in options)
                is (operator == "in")
            )
        case ">" | ">=" | "<" | "<=":
            return lambda value: value is not False and _compared(operator, value, wanted)
        case "=like" | "like" | "ilike":
            flags = re.IGNORECASE if operator == "ilike" else 0
            pattern = _pattern(str(wanted) if operator == "=like" else f"%{wanted}%")
            return lambda value: (
                isinstance(value, str) and bool(re.fullmatch(pattern, value, flags | re.DOTALL))
            )
    raise OdooFault("builtins.ValueError", f"Invalid operator {operator!r}")


def _equal(value: Any, wanted: Any) -> bool:  # noqa: ANN401 -- any field's value
    if isinstance(value, list):
        return wanted in value if wanted is not False else not value
    if wanted is False and not isinstance(value, int | float):
        return not value
    return bool(value == wanted)


def _compared(operator: str, value: Any, wanted: Any) -> bool:  # noqa: ANN401 -- any field's value
    match operator:
        case ">":
            return bool(value > wanted)
        case ">=":
            return bool(value >= wanted)
        case "<":
            return bool(value < wanted)
        case _:
            return bool(value <= wanted)


def _pattern(like: str) -> str:
    """Return a pattern of SQL as one of Python; a backslash makes the next character plain."""
    found, characters = [], iter(like)
    for character in characters:
        if character == "\\":
            found.append(re.escape(next(characters, "\\")))
        else:
            found.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return "".join(found)


def _sortable(value: Any) -> tuple[int, Any]:  # noqa: ANN401 -- any field's value
    if value is False or value is None:
        return (1, 0)
    return (0, value.casefold()) if isinstance(value, str) else (0, value)
