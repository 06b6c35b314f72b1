"""What Odoo's answers mean for the bridge: the one place where they become failures."""

from collections.abc import Iterator
from contextlib import contextmanager

from tillbridge.adapter import ExportUnreadable, PosFailure, PosOffline
from tillbridge.adapter.texts import _
from tillbridge_odoo.odoo import LoginRefused
from tillbridge_odoo.rpc import Fault, NoAnswer

LOGIN_REFUSED = _("Odoo refuses the login: the user, the API key or the database is not right.")
NO_DATABASE = _("Odoo has no database of that name.")
LOGIN_FIX = _(
    "Make a new API key in Odoo (the user's Preferences, Account Security), and put it where"
    " api_key says: it is read again by itself. From Odoo 18 on keys end, after 90 days or less."
)
DATABASE_FIX = _("Correct the option {option}.").format(option="database")
_RIGHTS_FIX = _("Give the bridge's user the right Point of Sale: User in Odoo.")
_SERVER_FIX = _("Look into Odoo's log; if the option pos or database is wrong, correct it.")

# Ends of names of exceptions after which Odoo has surely undone everything, and may do it now.
_PASSING = (
    "SerializationFailure",
    "DeadlockDetected",
    "LockNotAvailable",
    "OperationalError",
    "QueryCanceled",
    "PoolError",
    "TransactionRollbackError",
)


def is_passing(fault: Fault) -> bool:
    """Return whether Odoo's database was only busy: all undone, and worth asking again."""
    return fault.kind.endswith(_PASSING) and not is_database_unknown(fault)


def is_database_unknown(fault: Fault) -> bool:
    """Return whether there is no database as we name it; Odoo says it as PostgreSQL does."""
    return fault.kind.endswith("OperationalError") and "does not exist" in fault.text


def is_session_lost(fault: Fault) -> bool:
    """Return whether Odoo no longer knows us."""
    return fault.kind.endswith(("SessionExpiredException", "AccessDenied"))


@contextmanager
def reading() -> Iterator[None]:
    """Turn what goes wrong while menu, availability or tables are read into a failure of theirs."""
    try:
        yield
    except NoAnswer as failure:
        raise PosOffline(failure.text) from failure
    except LoginRefused as failure:
        raise ExportUnreadable(LOGIN_REFUSED, place="Odoo", fix=LOGIN_FIX) from failure
    except Fault as fault:
        if is_session_lost(fault):
            raise ExportUnreadable(LOGIN_REFUSED, place="Odoo", fix=LOGIN_FIX) from fault
        if is_database_unknown(fault):
            raise ExportUnreadable(NO_DATABASE, place="Odoo", fix=DATABASE_FIX) from fault
        if is_passing(fault):
            raise ExportUnreadable(
                _("Odoo's database is busy."),
                place="Odoo",
                fix=_("Nothing to do; it is read again soon."),
                passing=True,
            ) from fault
        rights = fault.kind.endswith("AccessError")
        raise ExportUnreadable(
            _("Odoo refuses to be read: {text}").format(text=fault.text),
            place="Odoo",
            fix=_RIGHTS_FIX if rights else _SERVER_FIX,
        ) from fault


@contextmanager
def asking() -> Iterator[None]:
    """Turn what goes wrong while Odoo is asked about orders into a failure; nothing was written."""
    try:
        yield
    except (NoAnswer, LoginRefused, Fault) as failure:
        raise nothing_written(failure) from failure


def nothing_written(failure: NoAnswer | LoginRefused | Fault) -> PosFailure:
    """Return what a failure means that surely left nothing in Odoo."""
    match failure:
        case NoAnswer():
            return PosOffline(failure.text)
        case LoginRefused():
            return PosOffline(LOGIN_REFUSED, fix=LOGIN_FIX)
        case Fault():
            if is_session_lost(failure):
                return PosOffline(LOGIN_REFUSED, fix=LOGIN_FIX)
            if is_database_unknown(failure):
                return PosOffline(NO_DATABASE, fix=DATABASE_FIX)
            if is_passing(failure):
                return PosOffline(_("Odoo's database is busy."))
            return PosFailure(failure.text)
