"""What every command begins with: the configuration, and a store of it by name."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tillbridge.core.errors import ConfigError, nearest
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    import typer

    from tillbridge.config import LoadedSettings, StoreSettings


def config_path(context: "typer.Context") -> Path | None:
    """Return what --config named, None for the search order."""
    return cast("Path | None", context.find_root().obj)


def load_settings(context: "typer.Context") -> "LoadedSettings":
    """Load the configuration, and set up the log that it asks for. Raises ConfigError."""
    loaded = load_file(config_path(context))
    set_up_log(loaded)
    return loaded


def load_file(path: Path | None) -> "LoadedSettings":
    """Load the configuration from this file, or from the first of the usual ones."""
    from tillbridge.config import load

    loaded = load(path)
    # A command beside the service reads the credentials where its unit takes them from.
    credentials = loaded.base_dir / "credentials"
    if credentials.is_dir():
        os.environ.setdefault("CREDENTIALS_DIRECTORY", str(credentials))
    return loaded


def set_up_log(loaded: "LoadedSettings") -> None:
    """Set up logs on stderr for a command, which tells only what goes wrong."""
    from tillbridge.core.log import configure

    bridge = loaded.settings.bridge
    level = bridge.log_level
    configure(bridge.log_format, "warning" if level == "info" else level)


def set_up_kept_log(loaded: "LoadedSettings") -> None:
    """Set up logs for the daemon: on stderr, and kept in the data folder."""
    from tillbridge.core.log import LOG_FOLDER, LogFiles, configure

    bridge = loaded.bridge
    kept = LogFiles(loaded.data_dir / LOG_FOLDER, bridge.keep_log_bytes)
    configure(bridge.log_format, bridge.log_level, keep=kept.keep)


def store_of(loaded: "LoadedSettings", name: str) -> "StoreSettings":
    """Return the store of that name. Raises ConfigError, which names those there are."""
    stores = loaded.settings.stores
    if name in stores:
        return stores[name]
    close = nearest(name, stores)
    raise ConfigError(
        _("{path} has no store {name}.").format(path=loaded.path, name=name),
        fix=_("Did you mean {name}?").format(name=close)
        if close
        else _("It has: {names}.").format(names=", ".join(stores)),
    )


def check_community(loaded: "LoadedSettings", name: str) -> None:
    """Raise ConfigError, which names those there are, where no community has that name."""
    known = loaded.settings.communities
    if name in known:
        return
    raise ConfigError(
        _("{path} has no community {name}.").format(path=loaded.path, name=name),
        fix=_("It has: {names}.").format(names=", ".join(known))
        if known
        else _("Add a table [communities.{name}]; see docs/communities.md.").format(name=name),
    )
