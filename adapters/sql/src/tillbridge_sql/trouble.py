"""What a database's error means, decided once; and its words, without anybody's data in them."""

import re
from enum import StrEnum

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError


class Trouble(StrEnum):
    """How one recovers from an error of the database."""

    OFFLINE = "offline"  # nobody answers, or not in time: try later
    BUSY = "busy"  # deadlock, serialization, a lock: the same again may work at once
    DUPLICATE = "duplicate"  # the key is there already
    TEXT = "text"  # a character that the table cannot hold
    REFUSED = "refused"  # the statement does not fit the database, or may not be run


# PostgreSQL: SQLSTATE. 57014 is a statement that took too long.
_BUSY_STATES = frozenset({"40001", "40P01", "55P03"})
_TEXT_STATES = frozenset({"22P05", "22021"})
_OFFLINE_CLASSES = ("08", "57P", "57014", "53")
# MySQL and MariaDB: error numbers.
_BUSY_NUMBERS = frozenset({1205, 1213})
_DUPLICATE_NUMBERS = frozenset({1062, 1586})
_TEXT_NUMBERS = frozenset({1366, 3988})
_OFFLINE_NUMBERS = frozenset(
    {1040, 1045, 1053, 1129, 1130, 1152, 1158, 1159, 1160, 1161, 1203, 1317, 1927, 1969, 3024}
)
_VALUES_NUMBERS = _DUPLICATE_NUMBERS | _TEXT_NUMBERS | {1264, 1292, 1365, 1406, 1411}

_LOGIN_NUMBERS = frozenset({1044, 1045, 1698})

_TEXT_CHARS = 200


def trouble_of(error: SQLAlchemyError) -> Trouble:
    """Return what an error means."""
    if not isinstance(error, DBAPIError):
        return Trouble.OFFLINE if isinstance(error, PoolTimeoutError) else Trouble.REFUSED
    if error.connection_invalidated:
        return Trouble.OFFLINE
    if (number := _number(error)) is not None:  # MySQL: it also has states, which say less
        return _of_number(number)
    if state := getattr(error.orig, "sqlstate", None):
        return _of_state(str(state))
    text = str(error.orig)
    if "UNIQUE constraint" in text:
        return Trouble.DUPLICATE
    if "is locked" in text:
        return Trouble.BUSY
    name = type(error.orig).__name__
    offline = name in {"OperationalError", "InterfaceError", "ConnectionTimeout"}
    return Trouble.OFFLINE if offline and not _is_sqlite(error) else Trouble.REFUSED


def is_login_refused(error: SQLAlchemyError) -> bool:
    """Return whether the database is there, and does not let this user in."""
    if not isinstance(error, DBAPIError):
        return False
    if (number := _number(error)) is not None:
        return number in _LOGIN_NUMBERS
    if state := getattr(error.orig, "sqlstate", None):
        return str(state).startswith("28")
    return "authentication failed" in str(error.orig)


def is_certain(error: SQLAlchemyError) -> bool:
    """Return whether the database itself has refused: then a COMMIT has surely not happened."""
    if not isinstance(error, DBAPIError) or error.connection_invalidated:
        return False
    if (number := _number(error)) is not None:
        return number < 2000 and number not in _OFFLINE_NUMBERS
    # 57P01: told to end while it committed; 08...: the line. Both say nothing of the outcome.
    state = str(getattr(error.orig, "sqlstate", None) or "")
    return bool(state) and not state.startswith(("08", "57P"))


def message_of(error: SQLAlchemyError) -> str:
    """Return what the database says, in one line, without statement, values and details."""
    orig = getattr(error, "orig", None)
    if orig is None:
        return type(error).__name__
    primary = getattr(getattr(orig, "diag", None), "message_primary", None)
    if primary:
        return _short(primary)
    number = _number(error)
    if number is not None and isinstance(error, DBAPIError):
        text = str(orig.args[1]) if len(orig.args) > 1 else type(orig).__name__
        if number in _VALUES_NUMBERS:
            text = re.sub(r"'(?:[^'\\]|\\.)*'", "'...'", text)
        return _short(f"{text} ({number})")
    return _short(str(orig)) or type(orig).__name__


def _of_state(state: str) -> Trouble:
    if state in _BUSY_STATES:
        return Trouble.BUSY
    if state == "23505":
        return Trouble.DUPLICATE
    if state in _TEXT_STATES:
        return Trouble.TEXT
    return Trouble.OFFLINE if state.startswith(_OFFLINE_CLASSES) else Trouble.REFUSED


def _of_number(number: int) -> Trouble:
    if number in _BUSY_NUMBERS:
        return Trouble.BUSY
    if number in _DUPLICATE_NUMBERS:
        return Trouble.DUPLICATE
    if number in _TEXT_NUMBERS:
        return Trouble.TEXT
    return Trouble.OFFLINE if number >= 2000 or number in _OFFLINE_NUMBERS else Trouble.REFUSED


def _number(error: SQLAlchemyError) -> int | None:
    args = getattr(getattr(error, "orig", None), "args", ())
    return args[0] if args and isinstance(args[0], int) else None


def _is_sqlite(error: DBAPIError) -> bool:
    return type(error.orig).__module__.startswith("sqlite3")


def _short(text: str) -> str:
    line = " ".join(text.strip().splitlines()[:1]).strip()
    return line if len(line) <= _TEXT_CHARS else f"{line[:_TEXT_CHARS]}..."
