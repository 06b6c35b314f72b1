"""Statements: what a query file says is one only if nothing can ever be put into its text.

Values go into a statement as bound parameters (`:name`) and in no other way. A text that asks to be
filled in, holds several statements, or builds one itself is refused when the file is loaded, with
place and remedy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from sqlalchemy import TextClause, text

from tillbridge.adapter.texts import _, joined
from tillbridge_sql.tokens import Kind, Token, tokens_of


class Use(StrEnum):
    """What a statement may do: only look, or also change."""

    READS = "reads"
    WRITES = "writes"


class StatementError(ValueError):
    """A statement that is not taken: `place` is file and line, `fix` says what to do."""

    def __init__(self, place: str, text: str, fix: str) -> None:
        super().__init__(joined("", (place, ": ", text, " ", fix)))
        self.place = place
        self.text = text
        self.fix = fix


@dataclass(frozen=True)
class Statement:
    """A statement under its name; `parameters` are the names of its bound values."""

    name: str
    place: str
    sql: str
    parameters: frozenset[str]
    reads: bool

    @cached_property
    def clause(self) -> TextClause:
        """Return it for the driver, which gets text and values apart."""
        return text(self.sql)

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the words in it, in small letters; a SELECT's columns are among them."""
        return frozenset(
            token.text.strip('"`').lower()
            for token in tokens_of(self.sql)
            if token.kind in {Kind.WORD, Kind.NAME}
        )


_LOOKS = frozenset({"SELECT", "WITH"})
_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE"})
# Anywhere in a statement that only looks: it would change or lock something after all.
_CHANGES_INSIDE = frozenset(
    "INSERT UPDATE DELETE MERGE REPLACE TRUNCATE CREATE ALTER DROP GRANT REVOKE CALL INTO LOCK COPY"
    " HANDLER SET".split()
)
# A function of that name is none of them: REPLACE(name, 'a', 'b').
_ALSO_FUNCTIONS = frozenset({"REPLACE", "INSERT", "TRUNCATE", "SET"})
# Anywhere at all: it makes a statement of a text, or steps out of the transaction.
_NEVER = frozenset(
    "EXECUTE PREPARE EXEC SP_EXECUTESQL COMMIT ROLLBACK SAVEPOINT BEGIN START DO CALL CREATE ALTER"
    " DROP GRANT REVOKE TRUNCATE COPY LOAD ATTACH PRAGMA VACUUM DBLINK DBLINK_EXEC QUERY_TO_XML"
    " LO_EXPORT LO_IMPORT PG_READ_FILE PG_SLEEP LOAD_FILE OUTFILE DUMPFILE".split()
)


def statement_of(name: str, sql: str, *, place: str, line: int, use: Use) -> Statement:
    """Return the statement. `place` is the file's name, `line` where the text begins (from 1).

    Raises StatementError.
    """
    tokens = [token for token in tokens_of(sql) if token.kind is not Kind.COMMENT]
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    where = _("{file}, line {line}, {name}").format(file=place, line=line, name=name)
    if not tokens:
        raise StatementError(where, _("It is empty."), _("Write a statement."))
    for problem, fix, token in _problems(tokens):
        raise StatementError(
            _("{file}, line {line}, {name}").format(file=place, line=line + token.line, name=name),
            problem,
            fix,
        )
    first = tokens[0].text.upper()
    reads = first in _LOOKS and not _changing(tokens)
    if use is Use.READS and not reads:
        odd = next(iter(_changing(tokens)), tokens[0])
        raise StatementError(
            _("{file}, line {line}, {name}").format(file=place, line=line + odd.line, name=name),
            _("It may only read, and says {text}.").format(text=odd.text),
            _("Write one SELECT."),
        )
    if first not in _LOOKS | _CHANGES:
        raise StatementError(
            where,
            _("It begins with {text}.").format(text=tokens[0].text),
            _("A statement begins with SELECT, WITH, INSERT, UPDATE or DELETE."),
        )
    parameters = frozenset(
        token.text.removeprefix(":") for token in tokens if token.kind is Kind.PARAMETER
    )
    statement = Statement(name, where, _bare(sql), parameters, reads)
    if set(statement.clause.compile().params) != parameters:  # SQLAlchemy reads `:a:` otherwise
        raise StatementError(
            where, _("A colon stands where none belongs."), _("Write :name, or ::type.")
        )
    return statement


def _problems(tokens: Sequence[Token]) -> Iterator[tuple[str, str, Token]]:
    """Yield what is wrong with a part, what to do, and the part."""
    bound = _("Write :name where the value belongs, without quotes: it is bound, never put in.")
    for place, token in enumerate(tokens):
        before = tokens[place - 1].text if place else ""
        after = tokens[place + 1].text if place + 1 < len(tokens) else ""
        match token.kind:
            case Kind.STRING if "\\" in token.text:
                fix = _("It means one thing here and another there: write CHR(92) or CHAR(92).")
                yield _("There is a backslash in a text."), fix, token
            case Kind.STRING | Kind.NAME:
                if asks := _asks_to_be_filled(token.text):
                    yield (
                        _("It holds {asks} between quotes: that would be put in.").format(
                            asks=asks
                        ),
                        bound,
                        token,
                    )
            case Kind.WORD if token.text.upper() in _NEVER and before != ".":
                fix = _("Write one plain SELECT, INSERT, UPDATE or DELETE.")
                yield (
                    _("It says {text}, which no statement here may.").format(
                        text=token.text.upper()
                    ),
                    fix,
                    token,
                )
            case Kind.OTHER:
                yield from _odd_sign(token, after, bound)


def _odd_sign(token: Token, after: str, bound: str) -> Iterator[tuple[str, str, Token]]:
    if token.text == ";":
        fix = _("Give each a line '-- name: ...' of its own.")
        yield _("There is more than one statement under this name."), fix, token
    elif token.text in {"{", "}", "?", "$"} or (token.text == "%" and after in {"(", "s", "d"}):
        yield (
            _("It holds {text}, which asks to be filled in.").format(text=token.text),
            bound,
            token,
        )
    elif token.text == "@":
        fix = _("Let a SELECT give the value to the steps that follow.")
        yield _("It uses a variable of the session (@)."), fix, token
    elif token.text == "#" and after not in {">", "-"}:
        yield (
            _("It holds #, a comment here and something else there."),
            _("Begin comments with --"),
            token,
        )
    elif token.text == "\\":
        yield _("It holds a backslash."), _("Leave it out."), token


def _asks_to_be_filled(text: str) -> str:
    """Return what in a string asks for a value: `:name`, `{name}`, `${name}`, `%(name)s`."""
    inner = text[1:-1]
    for token in tokens_of(inner):
        if token.kind is Kind.PARAMETER:
            return token.text
    for opening in ("{", "${", "%("):
        start = inner.find(opening)
        if start >= 0 and (inner[start + len(opening) :][:1].isalpha() or opening == "%("):
            return opening + "..."
    return ""


def _changing(tokens: Sequence[Token]) -> list[Token]:
    """Return the words that make a SELECT more than one."""
    found = []
    for place, token in enumerate(tokens):
        word = token.text.upper()
        if token.kind is not Kind.WORD or word not in _CHANGES_INSIDE:
            continue
        called = place + 1 < len(tokens) and tokens[place + 1].text == "("
        of_table = place > 0 and tokens[place - 1].text == "."
        if not (called and word in _ALSO_FUNCTIONS) and not of_table:
            found.append(token)
    return found


def _bare(sql: str) -> str:
    """Return the text without comments and without the last semicolon.

    A colon between quotes is marked as no parameter: SQLAlchemy would take `:word` for one.
    """
    parts = []
    position = 0
    for token in tokens_of(sql):
        start = sql.index(token.text, position)
        parts.append(sql[position:start])
        position = start + len(token.text)
        match token.kind:
            case Kind.COMMENT:
                parts.append(" ")
            case Kind.STRING | Kind.NAME:
                parts.append(token.text.replace(":", "\\:"))
            case _:
                parts.append(token.text)
    return "".join((*parts, sql[position:])).strip().rstrip(";").strip()
