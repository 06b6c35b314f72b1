"""Query files: named statements, and the names there are.

    -- name: items
    SELECT ...

    -- name: order [mysql]
    UPDATE ...

A line `-- name: NAME` begins a statement; `[postgresql]`, `[mysql]` (MariaDB too) or `[sqlite]`
after it keeps it for that database. Names of an order's steps may stand several times. A line
`-- parameter: NAME = VALUE` gives a parameter the value it has unless the options give another.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources

from tillbridge.adapter.texts import _
from tillbridge_sql.statements import Statement, StatementError, Use, statement_of

# What is read, and what the parameters are called that every statement may use.
READS = (
    *("items", "variants", "categories", "item_categories", "taxes"),
    *("addon_groups", "addons", "item_addon_groups"),
    *("availability", "tables", "fingerprint"),
)
# What is looked at around an order: its ticket, whether the till is open, whether it sells that.
LOOKS = (
    *("find_order", "find_cancelled", "news"),
    *("check_session", "check_item", "check_option"),
)
# What changes the till, in the order in which it is done.
STEPS = ("order", "line", "option", "payment", "order_end", "cancel", "news_handled")
NAMES = (*READS, *LOOKS, *STEPS)
DATABASES = ("postgresql", "mysql", "sqlite")

EVERYWHERE = frozenset("store location_id currency decimals tax_included now".split())
OF_KEY = frozenset({"key", "key16", "cancel_key"})
OF_ORDER = OF_KEY | frozenset(
    "order_number order_type order_total order_subtotal order_tax order_delivery_fee order_discount"
    " order_tip order_extra order_note order_paid order_placed_at order_tax_included order_lines"
    " customer_id extra_xml extra_row".split()
)
OF_LINE = frozenset(
    "line line_number row row_key item_id variant_id product_id line_name line_quantity line_price"
    " line_subtotal line_tax line_options line_xml".split()
)
OF_OPTION = frozenset(
    "option option_number row row_key option_id option_name option_quantity option_price"
    " option_xml".split()
)
OF_CANCEL = OF_KEY | {"cancel_reason"}
OF_NEWS = frozenset({"news_key", "news_status"}) | OF_KEY

# What may be named in each, beside what earlier steps have given.
SCOPES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(READS, frozenset[str]()),
    "find_order": OF_KEY,
    "find_cancelled": OF_KEY,
    "news": frozenset(),
    "check_session": OF_KEY,
    "check_item": OF_ORDER | OF_LINE,
    "check_option": OF_ORDER | OF_LINE | OF_OPTION,
    "order": OF_ORDER,
    "line": OF_ORDER | OF_LINE,
    "option": OF_ORDER | OF_LINE | OF_OPTION,
    "payment": OF_ORDER,
    "order_end": OF_ORDER,
    "cancel": OF_CANCEL,
    "news_handled": OF_NEWS,
}
# Whose columns are parameters of which: what a step may use of others.
_GIVEN_BY: Mapping[str, tuple[str, ...]] = {
    "order": ("check_session", "order"),
    "line": ("check_session", "order", "check_item", "line"),
    "option": ("check_session", "order", "check_item", "line", "check_option", "option"),
    "payment": ("check_session", "order", "payment"),
    "order_end": ("check_session", "order", "payment", "order_end"),
    "cancel": ("find_order", "check_session", "cancel"),
}

_HEADING = re.compile(
    r"^--\s*(?P<what>name|parameter)\s*:\s*(?P<word>\w+)\s*"
    r"(?:\[(?P<only>[\w ,]+)\]|=\s*(?P<value>.*?))?\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Queries:
    """The statements of one database, by name, and the parameters' values."""

    statements: Mapping[str, tuple[Statement, ...]]
    parameters: Mapping[str, object] = field(default_factory=dict)

    def one(self, name: str) -> Statement | None:
        """Return the statement of a name that has at most one."""
        found = self.statements.get(name, ())
        return found[0] if found else None

    def all(self, name: str) -> tuple[Statement, ...]:
        """Return the statements of a name, in their order."""
        return self.statements.get(name, ())

    def has(self, *names: str) -> bool:
        """Return whether there is a statement for each name."""
        return all(self.statements.get(name) for name in names)

    def with_parameters(self, given: Mapping[str, object]) -> "Queries":
        """Return these with the options' parameters over their own.

        Raises StatementError for a statement that names a parameter nobody gives.
        """
        found = Queries(self.statements, {**self.parameters, **given})
        for statements in self.statements.values():
            for statement in statements:
                found._check_parameters(statement)
        return found

    def over(self, other: "Queries") -> "Queries":
        """Return these over others: a name that is here replaces all of that name there."""
        statements = {**other.statements, **self.statements}
        return Queries(
            {name: each for name, each in statements.items() if each},
            {**other.parameters, **self.parameters},
        )

    def without(self, names: Iterable[str]) -> "Queries":
        """Return these without the statements of some names."""
        left_out = set(names)
        remaining = {name: each for name, each in self.statements.items() if name not in left_out}
        return Queries(remaining, self.parameters)

    def _check_parameters(self, statement: Statement) -> None:
        known = EVERYWHERE | SCOPES[statement.name] | self.parameters.keys()
        given: set[str] = set()
        for name in _GIVEN_BY.get(statement.name, ()):
            for other in self.all(name):
                given |= other.words
        for parameter in sorted(statement.parameters - known):
            if parameter.lower() not in given:
                raise StatementError(
                    statement.place,
                    _("Nobody gives :{parameter} a value.").format(parameter=parameter),
                    _(
                        "Write it into the option parameters: {{ {parameter} = ... }}; or "
                        "correct the name."
                    ).format(parameter=parameter),
                )


def read_queries(text: str, place: str, database: str) -> Queries:
    """Return what a query file says for a database. Raises StatementError."""
    statements: dict[str, list[Statement]] = {}
    parameters: dict[str, object] = {}
    for heading, number, body in _parts(text, place):
        word = heading["word"].lower()
        if heading["what"].lower() == "parameter":
            parameters[word] = heading["value"] or ""
            continue
        if word not in NAMES:
            raise StatementError(
                _("{file}, line {line}").format(file=place, line=number),
                _("There is no query {word}.").format(word=word),
                _("There are: {names}.").format(names=", ".join(NAMES)),
            )
        if not _is_for(
            heading["only"], database, _("{file}, line {line}").format(file=place, line=number)
        ):
            continue
        found = statements.setdefault(word, [])
        if _is_blank(body):
            continue  # the name alone: what the profile has under it is left out
        use = Use.WRITES if word in STEPS else Use.READS
        found.append(statement_of(word, body, place=place, line=number + 1, use=use))
        if word not in STEPS and len(found) > 1:
            raise StatementError(
                _("{file}, line {line}").format(file=place, line=number),
                _("{word} appears twice.").format(word=word),
                _("Only the steps of an order may have several statements."),
            )
    return Queries({name: tuple(found) for name, found in statements.items()}, parameters)


def profile_queries(profile: str, database: str) -> Queries:
    """Return the queries that come with the adapter for a kind of till."""
    name = f"{profile}.sql"
    text = (resources.files("tillbridge_sql") / "profiles" / name).read_text("utf-8")
    return read_queries(text, _("profile {profile}").format(profile=profile), database)


def _parts(text: str, place: str) -> list[tuple[re.Match[str], int, str]]:
    """Return each heading with its line (from 1) and what stands below it."""
    lines = text.splitlines()
    headings = [
        (match, number)
        for number, line in enumerate(lines, 1)
        if (match := _HEADING.match(line.strip()))
    ]
    if not headings:
        raise StatementError(
            place, _("It names no query."), _("Begin each with a line '-- name: items'.")
        )
    ends = [number for _match, number in headings[1:]] + [len(lines) + 1]
    above = "\n".join(lines[: headings[0][1] - 1])
    if not _is_blank(above):
        raise StatementError(
            _("{file}, line {line}").format(file=place, line=1),
            _("A statement has no name."),
            _("Write a line '-- name: items' above it."),
        )
    return [
        (match, number, "\n".join(lines[number : end - 1]))
        for (match, number), end in zip(headings, ends, strict=True)
    ]


def _is_blank(text: str) -> bool:
    return all(not line.strip() or line.strip().startswith("--") for line in text.splitlines())


def _is_for(only: str | None, database: str, place: str) -> bool:
    if only is None:
        return True
    names = {name.strip().lower().replace("mariadb", "mysql") for name in only.split(",")}
    if strange := sorted(names - set(DATABASES)):
        raise StatementError(
            place,
            _("There is no database {name} here.").format(name=strange[0]),
            _("There are: {names}.").format(names=", ".join(DATABASES)),
        )
    return database in names
