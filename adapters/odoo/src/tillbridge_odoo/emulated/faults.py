"""Failures as Odoo's JSON-RPC tells them."""

from typing import Any


class OdooFault(Exception):
    """An exception inside Odoo: its name, and what it says."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text

    def to_json(self) -> dict[str, Any]:
        """Return the `error` of an answer."""
        return {
            "code": 200,
            "message": "Odoo Server Error",
            "data": {
                "name": self.kind,
                "debug": "Traceback (most recent call last):\n  ...",
                "message": self.text,
                "arguments": [self.text],
                "context": {},
            },
        }


def user_error(text: str) -> OdooFault:
    """Return what a person is told."""
    return OdooFault("odoo.exceptions.UserError", text)


def no_model(model: str) -> OdooFault:
    """Return the failure of a model that is not there."""
    return user_error(f"Object {model} doesn't exist")


def no_database(name: str) -> OdooFault:
    """Return the failure of a database that is not there, in PostgreSQL's words."""
    text = (
        f'connection to server on socket "/run/s" failed: FATAL:  database "{name}" does not exist'
    )
    return OdooFault("psycopg2.OperationalError", text)


def no_field(model: str, field: str) -> OdooFault:
    """Return the failure of a field that is not there."""
    return OdooFault("builtins.ValueError", f"Invalid field {field!r} on model {model!r}")


def no_record(model: str, number: object) -> OdooFault:
    """Return the failure of a record that is not there."""
    return OdooFault(
        "odoo.exceptions.MissingError",
        f"Record does not exist or has been deleted.\n(Record: {model}({number},), User: 2)",
    )


def access_denied() -> OdooFault:
    """Return the failure of a wrong key."""
    return OdooFault("odoo.exceptions.AccessDenied", "Access Denied")
