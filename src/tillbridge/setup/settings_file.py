"""Changes of the settings that a form asks for: compared with the file, checked, and written.

The file counts (decision 137): a form that was loaded before somebody edited what it shows is
refused, and nothing else of the file is touched.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from tillbridge.config.loading import loaded_from
from tillbridge.config.toml import ConfigFaults, KeyPath, value_at
from tillbridge.config.translate import field_at
from tillbridge.config.writing import Changes, difference, edited, replace_file
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import learn_secret
from tillbridge.ledger.vault import Vault, vault_name
from tillbridge.setup.draft import digest_of
from tillbridge.setup.options import Kind, kind_of, plain_type, text_of
from tillbridge.setup.sections import Setting, SettingsSection

# -- Fields of a settings form: what the file says as text, and text as what the file says. Pure.
#
# The kind of a field follows from the annotation of its setting in `config/`.


_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form. `name` is its dotted key, `path` the same in parts.

    `default` is None if the setting has none, `number` the type of a number or of a line.
    """

    setting: Setting
    name: str
    path: KeyPath
    kind: Kind
    default: Any
    required: bool
    choices: tuple[str, ...] = ()
    number: type | None = None


def fields_of(section: SettingsSection, store: str = "") -> tuple[FormField, ...]:
    """Return the fields of a section, those of one store where it is a store's."""
    return tuple(field_of(each, store) for each in section.settings)


def field_of(setting: Setting, store: str = "") -> FormField:
    """Return a setting as a field. LookupError for one that there is not."""
    path = tuple(store if part == "{store}" else part for part in setting.path.split("."))
    info, _section = field_at(tuple(setting.path.split(".")))
    if info is None:
        raise LookupError(setting.path)
    kind, choices, number = _kind(info.annotation)
    if kind == "text" and setting.choices:
        kind, choices = "choice", tuple(setting.choices)
    default = info.get_default(call_default_factory=True)
    required = info.is_required()
    return FormField(
        setting,
        ".".join(path),
        path,
        kind,
        None if required else default,
        required,
        choices,
        number,
    )


def _kind(annotation: Any) -> tuple[Kind, tuple[str, ...], type | None]:  # noqa: ANN401 -- annotations are of any kind
    plain, kind = plain_type(annotation), kind_of(annotation)
    if kind == "choice":
        return kind, tuple(map(str, get_args(plain))), None
    number = plain_type(get_args(plain)[0]) if kind == "lines" else plain
    return "text" if kind == "path" else kind, (), number if number in {int, float} else None


def shown(field: FormField, value: object) -> str:
    """Return what the form holds for a value of the file; "" for none, and for every secret."""
    if field.kind in {"flag", "choice"}:
        value = field.default if value is None else value
    if value is None or field.kind == "secret":
        return ""
    return text_of(value)


def default_of(field: FormField) -> str:
    """Return the default as the form shows it in an empty field."""
    if field.default is None or field.kind == "secret":
        return ""
    if field.kind == "lines":
        return ", ".join(map(text_of, field.default))
    return text_of(field.default)


def value_of(field: FormField, text: str) -> Any:  # noqa: ANN401 -- any TOML value
    """Return what the file is to say, None for nothing. Raises ConfigError, with the field."""
    text = text.strip()
    if not text:
        return None
    if field.kind == "flag":
        return _FLAGS.get(text)
    if field.kind == "lines":
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return [_number(field, line) for line in lines] if field.number else lines
    return _number(field, text) if field.kind == "number" else text


def _number(field: FormField, text: str) -> int | float:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = float("nan")
    if abs(number) <= 2**53:  # neither infinite nor no number
        if number.is_integer():
            return int(number)
        if field.number is float:
            return number
    raise ConfigError(
        _("This must be a whole number.") if field.number is int else _("This must be a number."),
        fix=_("Write it in digits, for example {number}.").format(
            number=default_of(field).partition(",")[0] or "5"
        ),
        field=field.name,
    )


def emptied(document: Mapping[str, Any], path: KeyPath) -> KeyPath:
    """Return what to take out so that the table at `path` goes, and none is left empty above it."""
    while len(path) > 1 and len(value_at(document, path[:-1]) or ()) == 1:
        path = path[:-1]
    return path


REMOVE = "remove:"  # before the name of a secret: the box that takes it away


@dataclass(frozen=True, slots=True)
class Saved:
    """What was written: the lines that changed, without secrets, and the copy of the old file."""

    lines: tuple[str, ...] = ()
    copy: Path | None = None


def seen(section: SettingsSection, store: str, document: Mapping[str, Any]) -> str:
    """Return a digest of what a form of this section shows of a file. No secret is in it."""
    return digest_of(
        *(
            repr(value_at(document, field.path) is not None)
            if field.kind == "secret"
            else repr(value_at(document, field.path))
            for field in fields_of(section, store)
        )
    )


def changes_of(
    section: SettingsSection, store: str, form: Mapping[str, str], document: Mapping[str, Any]
) -> tuple[dict[KeyPath, Any], dict[str, str | None]]:
    """Return what a form changes in the file, and the secrets that go into the vault.

    A secret that is None is dropped there. What the form leaves out stays. Raises ConfigError.
    """
    fields = fields_of(section, store)
    changes: dict[KeyPath, Any] = {}
    secrets: dict[str, str | None] = {}
    for field in fields:
        there = value_at(document, field.path)
        if field.kind == "secret":
            if text := form.get(field.name, "").strip():
                secrets[field.name] = text
                if there != {"vault": True}:
                    changes[field.path] = {"vault": True}
            elif there is not None and REMOVE + field.name in form:
                secrets[field.name] = None
                changes[field.path] = None
        elif field.name in form:
            value = value_of(field, form[field.name])
            counts = field.default if there is None else there
            same = value == there or (there is None and value == counts)
            if not same:
                changes[field.path] = value
    for group in section.groups:
        if group.optional:
            inside = [each for each in fields if each.setting in group.fields]
            _drop_empty(tuple(group.optional.split(".")), inside, document, changes, secrets)
    return changes, secrets


def _drop_empty(
    table: KeyPath,
    fields: list[FormField],
    document: Mapping[str, Any],
    changes: dict[KeyPath, Any],
    secrets: dict[str, str | None],
) -> None:
    """Take an optional table away where nothing that it needs is in it any more.

    What is only there because a list has a value chosen is no reason for a table.
    """
    left = [
        each
        for each in fields
        if each.kind != "choice"
        and changes.get(each.path, value_at(document, each.path)) not in (None, [])
    ]
    if left:
        return
    for each in fields:
        changes.pop(each.path, None)
        if each.kind == "secret":
            secrets[each.name] = None
    if value_at(document, table) is not None:
        changes[emptied(document, table)] = None


def save(path: Path, text: str, changes: Changes) -> Saved:
    """Write the changes into the file, whose text is `text`, where the bridge could start with it.

    Raises ConfigError, with the field that is wrong; the file is then as it was.
    """
    new = edited(text, changes)
    try:
        loaded_from(path, new, tomllib.loads(new))
    except ConfigFaults as faults:
        raise _beside_its_field(faults, changes) from None
    return Saved(tuple(difference(text, new)), replace_file(path, new))


def _beside_its_field(faults: ConfigFaults, changes: Changes) -> ConfigError:
    """Return what is wrong with a value that was typed, else with the file."""
    keys = {path: ".".join(map(str, path)) for path in changes}
    for fault in faults.faults:
        for length in range(len(fault.path), 0, -1):
            if (field := keys.get(fault.path[:length])) is not None:
                return ConfigError(
                    _("This {what}").format(what=fault.text), fix=fault.fix, field=field
                )
    # A field that is missing beside those that were filled in.
    first = faults.faults[0]
    if any(path[:-1] == first.path[:-1] for path in changes):
        return ConfigError(_("This field is required too."), field=first.key)
    return faults


class SecretsOfForm:
    """The secrets of a form in the vault, until the file is written; put back where it is not."""

    def __init__(self, vault: Vault, secrets: Mapping[str, str | None]) -> None:
        self._vault = vault
        self._new = secrets
        self._before = {key: vault.get(vault_name(key)) for key in secrets}

    def store(self) -> None:
        """Let the vault hold the new ones. Raises LedgerError."""
        for key, secret in self._new.items():
            if secret is not None:
                learn_secret(secret)
                self._vault.put(vault_name(key), secret)

    def forget_removed(self) -> None:
        """Drop those that were taken away, now that no file points at them."""
        for key, secret in self._new.items():
            if secret is None:
                self._vault.drop(vault_name(key))

    def put_back(self) -> None:
        """Let the vault hold what it held before."""
        for key, secret in self._before.items():
            if secret is None:
                self._vault.drop(vault_name(key))
            else:
                self._vault.put(vault_name(key), secret)


# -- who may sign in on the page, as the file names them


ROLES = ("look", "staff", "technician")
USER_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_USERS: KeyPath = ("status_page", "users")


def users_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the role of each user of a file."""
    users = value_at(document, _USERS)
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

    Raises ConfigError if nobody could change settings any more.
    """
    users = users_of(document)
    if not USER_NAME.fullmatch(name):
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
