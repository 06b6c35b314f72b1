"""Who may do what on the page: its users, and a visitor with a role."""

from dataclasses import dataclass

from tillbridge.core.actor import Actor, Role


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

    @property
    def actor(self) -> Actor:
        """The visitor as somebody who acts."""
        return Actor(self.who, self.role)


NOBODY = Visitor(Role.ANYBODY)
