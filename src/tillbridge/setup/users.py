"""Who may sign in on the page, as the file names them. Pure but for the hash of a password."""

import re
from collections.abc import Mapping
from typing import Any

from tillbridge.config.toml import KeyPath
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.setup.form_values import emptied

ROLES = ("look", "staff", "technician")
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_USERS: KeyPath = ("status_page", "users")


def users_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the role of each user of a file."""
    page = document.get("status_page")
    users = page.get("users") if isinstance(page, Mapping) else None
    if not isinstance(users, Mapping):
        return {}
    return {
        str(name): str(user.get("role", "")) if isinstance(user, Mapping) else ""
        for name, user in users.items()
    }


def saved_user(
    document: Mapping[str, Any], name: str, role: str, password_hash: str
) -> dict[KeyPath, Any]:
    """Return the changes that add a user, or change one; without a hash the password stays.

    Raises ConfigError where nobody could change settings any more.
    """
    users = users_of(document)
    if not _NAME.fullmatch(name):
        raise ConfigError(
            _("This cannot be a user name."),
            fix=_("Use only letters, digits and . _ @ - in a name."),
            field="name",
        )
    if role not in ROLES:
        raise ConfigError(_("This role does not exist."), fix=_("Choose one."), field="role")
    if name not in users and not password_hash:
        raise ConfigError(
            _("The password is missing."),
            fix=_("Choose one of at least 8 characters."),
            field="password",
        )
    _keep_an_administrator({**users, name: role}, "role")
    changes: dict[KeyPath, Any] = {}
    if users.get(name) != role:
        changes[*_USERS, name, "role"] = role
    if password_hash:
        changes[*_USERS, name, "password"] = password_hash
    return changes


def without_user(document: Mapping[str, Any], name: str) -> dict[KeyPath, Any]:
    """Return the changes that take a user away. Raises ConfigError as above."""
    users = users_of(document)
    if name not in users:
        raise ConfigError(_("There is no user {name}.").format(name=name))
    del users[name]
    _keep_an_administrator(users, "")
    return {emptied(document, (*_USERS, name)): None}


def _keep_an_administrator(users: Mapping[str, str], field: str) -> None:
    if users and "technician" not in users.values():
        raise ConfigError(
            _("Then nobody could change settings."),
            fix=_("Keep at least one user with the role Administrator."),
            field=field,
        )
