"""Who may do what on the page: roles that contain each other, and a visitor with one of them."""

from dataclasses import dataclass
from enum import IntEnum


class Role(IntEnum):
    """What a visitor may do; each may do all that those before it may.

    `ANYBODY` needs no password (the page that asks for one), `LOOK` sees everything, `STAFF` also
    acts on orders and takes items off sale, `TECHNICIAN` does the rest.
    """

    ANYBODY = 0
    LOOK = 1
    STAFF = 2
    TECHNICIAN = 3

    @property
    def word(self) -> str:
        """The role as the configuration writes it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class User:
    """Someone who may sign in: a role, and the Argon2id hash of the password (PHC text)."""

    role: Role
    password_hash: str


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at the page: the name they signed in with, "" where no password is asked for."""

    role: Role
    name: str = ""

    @property
    def who(self) -> str:
        """The visitor as the audit trail writes it."""
        return f"page:{self.name}" if self.name else "page"


NOBODY = Visitor(Role.ANYBODY)
