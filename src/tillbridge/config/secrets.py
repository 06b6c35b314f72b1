"""Secrets that the configuration only points at: read when they are needed, never shown."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import Discriminator, Field, SecretStr, Tag, ValidationError, model_validator

from tillbridge.config.values import Section
from tillbridge.core.errors import ConfigError
from tillbridge.core.files import claim_file
from tillbridge.core.i18n import _
from tillbridge.core.redaction import learn_secret

# Returns what the vault holds; None for nothing.
FromVault = Callable[[], str | None]
# The same for any setting, by its dotted key.
VaultOfSettings = Callable[[str], str | None]


class SecretSource(Section):
    """Where a secret comes from: exactly one of file, env, credential and vault."""

    file: Path | None = Field(None, strict=False)
    """A file that holds the secret; a relative one counts from this file's folder."""
    env: str | None = Field(None, min_length=1)
    """The environment variable that holds the secret."""
    credential: str | None = Field(None, pattern=r"^[^/\\]+$")
    """The systemd credential (LoadCredential=) that holds the secret."""

    vault: Literal[True] | None = None
    """true: the bridge keeps it itself, encrypted, since it was typed on the page. Not for
    passwords of users, nor for options of adapters, nor in [ledger]."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = (self.file, self.env, self.credential, self.vault)
        if sum(source is not None for source in sources) != 1:
            msg = "give exactly one of file, env, credential and vault"
            raise ValueError(msg)
        return self


def _secret_kind(value: object) -> str:
    return "source" if isinstance(value, dict | SecretSource) else "text"


Secret = Annotated[
    Annotated[SecretStr, Field(min_length=1), Tag("text")] | Annotated[SecretSource, Tag("source")],
    Discriminator(_secret_kind),
]


def resolve_secret(
    source: SecretStr | SecretSource,
    *,
    key: str,
    base_dir: Path,
    from_vault: FromVault | None = None,
) -> SecretStr:
    """Return the secret that `key` names; `from_vault` looks into the vault, where it may be.

    White space around it is dropped: editors end files with a new line. Raises ConfigError, which
    says where it was looked for, and never holds the secret.
    """
    if isinstance(source, SecretStr):
        return source
    fix = _("Put the secret there and nothing else.")
    if source.vault:
        value, place = _in_vault(from_vault, key), _("the encrypted store of secrets")
    elif source.env is not None:
        value, place = _from_environment(source.env, key), f"${source.env}"
    elif source.credential is not None:
        path = _credential_path(source.credential, key)
        value, place = _from_file(path, key), str(path)
        fix = _(
            "Put the secret and nothing else into the file that LoadCredential= in the service "
            "names (credentials/ beside the configuration), then restart it."
        )
    else:
        path = base_dir / (source.file or "")
        value, place = _from_file(path, key), str(path)
    value = value.strip()
    if not value:
        raise ConfigError(_("{key}: {place} is empty.").format(key=key, place=place), fix=fix)
    if any(character.isspace() for character in value):
        text = _("{key}: {place} holds more than one word.")
        raise ConfigError(text.format(key=key, place=place), fix=fix)
    return SecretStr(value)


def _in_vault(from_vault: FromVault | None, key: str) -> str:
    if from_vault is None:
        text = _("{key}: this setting cannot be entered on the page.")
        raise ConfigError(text.format(key=key), fix=_("Use file = ... instead."))
    value = from_vault()
    if value is None:
        raise ConfigError(
            _("{key}: it has not been entered on the page yet.").format(key=key),
            fix=_("Enter it on the page, under Settings, or use file = ... instead."),
        )
    return value


def _from_environment(name: str, key: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ConfigError(
            _("{key}: the environment variable {name} is not set.").format(key=key, name=name),
            fix=_("Set it for the process that starts the bridge, or use file = ... instead."),
        )
    return value


def _credential_path(name: str, key: str) -> Path:
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        raise ConfigError(
            _("{key}: there is no systemd credential {name} here.").format(key=key, name=name),
            fix=_(
                "Start the bridge as its systemd service with LoadCredential={name}:PATH, "
                "or use file = ... instead."
            ).format(name=name),
        )
    return Path(folder) / name


def _from_file(path: Path, key: str) -> str:
    claim_file(path)
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        text = _("the file {path} does not exist.")
        fix = _("Put the secret there and nothing else.")
    except PermissionError:
        text = _("the bridge has no permission to read the file {path}.")
        fix = _("Give this user, and nobody else, permission to read it.")
    except UnicodeDecodeError:
        text, fix = _("the file {path} is not a text file."), _("Save it as UTF-8.")
    except OSError as failure:
        text = _("the file {path} cannot be read ({why}).").replace("{why}", str(failure.strerror))
        fix = _("Check the path.")
    raise ConfigError(f"{key}: {text.format(path=path)}", fix=fix)


# -- the ledger on a database server: its URL, and the key of the secrets in it

_HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::\d{1,5})?")  # of one server of a cluster
_SCHEMES = frozenset({"postgresql", "postgres", "postgresql+psycopg"})


def resolve_ledger_url(source: SecretStr | SecretSource | None, base_dir: Path) -> str | None:
    """Return the URL of the database, as SQLAlchemy takes it; None: a file in the data folder.

    It may hold a password, and is masked in everything that is shown from now on. Raises
    ConfigError.
    """
    if source is None:
        return None
    secret = resolve_secret(source, key="ledger.url", base_dir=base_dir)
    return database_url(secret.get_secret_value(), "ledger.url")


def resolve_ledger_key(source: SecretStr | SecretSource | None, base_dir: Path) -> str | None:
    """Return the key of the stored secrets; None: it is in the data folder. Raises ConfigError."""
    if source is None:
        return None
    key = resolve_secret(source, key="ledger.key", base_dir=base_dir).get_secret_value()
    learn_secret(key)
    return key


def ledger_url_of(path: Path, document: Mapping[str, Any]) -> str | None:
    """Return `resolve_ledger_url` of a file's content that nobody has checked. Raises ConfigError.

    For commands that read the file without its models, since they have to be quick.
    """
    table = document.get("ledger")
    url = table.get("url") if isinstance(table, Mapping) else None
    if url is None:
        return None
    try:
        source = SecretStr(url) if isinstance(url, str) else SecretSource.model_validate(url)
    except ValidationError:
        text = _("{path} does not say correctly where the database is: [ledger] url.")
        raise ConfigError(
            text.format(path=path), fix=_("Correct it, then check it: tillbridge config check")
        ) from None
    return resolve_ledger_url(source, path.absolute().parent)


def database_url(text: str, name: str) -> str:
    """Return the URL of a PostgreSQL database as SQLAlchemy takes it; what it holds is masked.

    Raises ConfigError, which calls it `name` and never shows it.
    """
    learn_secret(text)
    if fault := database_url_fault(text):
        raise ConfigError(f"{name} {fault[0]}", fix=fault[1])
    parts = urlsplit(text)
    if parts.password:
        learn_secret(parts.password)
        learn_secret(unquote(parts.password))
    return f"postgresql+psycopg://{text.partition('://')[2]}"


def database_url_fault(text: str) -> tuple[str, str] | None:
    """Return what is wrong with the URL of a database, and the remedy; None: nothing."""
    form = _("Write postgresql://USER:PASSWORD@HOST/NAME.")
    escaped = _("In a password, write # as %23, / as %2F, ? as %3F and @ as %40.")
    try:
        parts = urlsplit(text)
    except ValueError:
        return _("is not a URL."), f"{form} {escaped}"
    hosts = [_HOST.fullmatch(each) for each in parts.netloc.rpartition("@")[2].split(",")]
    if None in hosts:
        return _("is not a URL."), f"{form} {escaped}"
    if parts.scheme not in _SCHEMES:
        return _("must begin with postgresql://, the only database server that works."), form
    if not (any(each and each[1] for each in hosts) or "host" in parse_qs(parts.query)):
        return _("names no server."), form
    if not parts.path.strip("/"):
        return _("names no database."), form
    return None
