"""Who may open the page, as the configuration says it."""

from ipaddress import ip_address
from pathlib import Path

from tillbridge.config import PageUser, StatusPageSettings
from tillbridge.config.secrets import resolve_secret
from tillbridge.core.actor import Role
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.web.authenticator import AccessRules
from tillbridge.web.roles import User

_FORM = "$argon2id$"


def access_rules(page: StatusPageSettings, base_dir: Path) -> AccessRules:
    """Return the rules. Raises ConfigError where a password's hash cannot be had, or is none."""
    return AccessRules(
        users={name: _user(name, user, base_dir) for name, user in page.users.items()},
        allowed_hosts=tuple(page.allowed_hosts),
        session_idle_s=page.session_idle_s,
        session_longest_s=page.session_longest_s,
    )


def reached_at(address: str) -> str:
    """Return where this machine reaches a listener on `address`, as a URL writes it."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if found.is_unspecified:
        return "[::1]" if found.version == 6 else "127.0.0.1"
    return f"[{address}]" if found.version == 6 else address


def _user(name: str, user: PageUser, base_dir: Path) -> User:
    key = f"status_page.users.{name}.password"
    found = resolve_secret(user.password, key=key, base_dir=base_dir).get_secret_value()
    if not found.startswith(_FORM) or found.count("$") != 5:
        raise ConfigError(
            _("{key} is no Argon2id hash.").format(key=key),
            fix=_("Make one with: tillbridge password {name}").format(name=name),
        )
    return User(Role[user.role.upper()], found)
