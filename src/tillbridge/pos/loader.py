"""Finding an adapter by its name and opening it with its options.

Adapters are registered under the entry points `tillbridge.pos`, each an
`tillbridge.adapter.Adapter`. Only the one that is asked for is imported. The adapters
folder and process are built in, and there even where the program was not installed.
"""

import importlib.util
import tomllib
import traceback
import warnings
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module, metadata
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tillbridge.adapter import API_VERSION, Adapter, AdapterContext, registration
from tillbridge.core.errors import ConfigError, nearest
from tillbridge.core.i18n import ADAPTERS, _, joined
from tillbridge.core.log import get_logger

# Where an adapter stands: `package.module:ADAPTER`, by its name.
_BUILT_IN = {
    "folder": "tillbridge.pos.folder:ADAPTER",
    "process": "tillbridge.pos.process:ADAPTER",
}


def find_adapters() -> dict[str, Adapter]:
    """Return every adapter that can be used, by name; one that cannot be is logged."""
    adapters: dict[str, Adapter] = {}
    for name, place in sorted(_places().items()):
        try:
            adapters[name] = _load(name, place)
        except ConfigError as failure:
            get_logger().warning("adapter.unusable", adapter=name, detail=str(failure))
    return adapters


def find_adapter(name: str) -> Adapter:
    """Return the adapter of that name, or of a module: `package.module:ADAPTER`.

    The second is for an adapter that is being written and not installed yet. Raises ConfigError.
    """
    place = _place_of(name)
    if place is None:
        names = sorted(_places())
        near = nearest(name, names)
        fix = _("Did you mean {name!r}?").format(name=near) if near else ""
        installed = _("Installed are: {names}.").format(names=", ".join(names))
        raise ConfigError(
            _("adapter: {name!r} is not installed.").format(name=name),
            fix=f"{fix} {installed}".strip(),
        )
    return _load(name, place)


def module_of(name: str) -> str | None:
    """Return the module of an adapter, not imported; None if there is no such adapter."""
    place = _place_of(name)
    return place.partition(":")[0] if place else None


class AdapterNotLoaded(ConfigError):
    """The adapter's own code fails while it is imported."""


def open_adapter(
    name: str, options: Mapping[str, Any], context: AdapterContext, *, table: str = "pos"
) -> object:
    """Return the adapter's object for a store, whose methods are its capabilities.

    `table` is the part of the store's configuration the options are from: `pos` or `orders`.
    Raises ConfigError, which names the key and the nearest valid one.
    """
    where = f"stores.{context.store}.{table}"
    return open_found(find_adapter(name), options, context, where)


def checked_options(adapter: Adapter, options: Mapping[str, Any], where: str = "") -> BaseModel:
    """Return the options as the adapter takes them. Raises ConfigError."""
    try:
        return adapter.options.model_validate(dict(options))
    except ValidationError as failure:
        raise _not_valid(failure, adapter, where) from failure


def open_found(
    adapter: Adapter, options: Mapping[str, Any], context: AdapterContext, where: str = ""
) -> object:
    """Return the object of an adapter that was found; `where` is the table of the options.

    Raises ConfigError.
    """
    checked = checked_options(adapter, options, where)
    try:
        return adapter.open(checked, context)
    except ValueError as failure:
        words = failure.args[0] if failure.args else str(failure)
        raise ConfigError(
            joined(" ", (f"[{where}]", words)) if where else words,
            fix=_("Correct the options of the adapter {name}.").format(name=adapter.name),
        ) from failure


def _place_of(name: str) -> str | None:
    if ":" in name:
        return name
    return _BUILT_IN.get(name) or _places().get(name)


def _places() -> dict[str, str]:
    # What takes longer than opening the adapter: the metadata of all that is installed.
    found = metadata.entry_points(group=ADAPTERS)
    return {entry.name: f"{entry.module}:{entry.attr}" for entry in found} | _BUILT_IN


def _load(name: str, place: str) -> Adapter:
    module, _colon, attribute = place.partition(":")
    try:
        adapter = attrgetter(attribute)(import_module(module))
    except Exception as failure:  # whatever the import of somebody else's code raises
        raise AdapterNotLoaded(
            _("The adapter {name} cannot be loaded: {detail}").format(
                name=name, detail=f"{type(failure).__name__}: {failure}"
            ),
            fix=import_remedy(failure, module)
            or _("Reinstall it in a version that works with this bridge."),
        ) from failure
    if not isinstance(adapter, Adapter):
        raise ConfigError(
            _("The adapter {name} does not register an Adapter.").format(name=name),
            fix=_("Tell its vendor that the entry point must name a tillbridge.adapter.Adapter."),
        )
    _check_version(name, adapter)
    return adapter


def import_remedy(failure: Exception, module: str) -> str:
    """Return which line of the module's package must be mended; "" where it is not one of these."""
    if isinstance(failure, ImportError):
        return ""
    package = module.partition(".")[0]
    places = [(each.filename, each.lineno) for each in traceback.extract_tb(failure.__traceback__)]
    own = [each for each in places if package in Path(each[0]).with_suffix("").parts]
    if isinstance(failure, SyntaxError) and failure.filename:
        own.append((failure.filename, failure.lineno))
    return (
        _("Correct line {line} of {file}.").format(line=own[-1][1], file=own[-1][0]) if own else ""
    )


def _check_version(name: str, adapter: Adapter) -> None:
    """Refuse what this bridge cannot work with; warn of what the next one will not."""
    theirs = adapter.api_version
    if theirs == API_VERSION:
        return
    if until := registration.OLD_API_VERSIONS.get(theirs):
        warnings.warn(
            f"The adapter {name} is for version {theirs} of the adapter API, which works until"
            f" {until}; this is {API_VERSION}. docs/adapters/policy.md tells what to change.",
            DeprecationWarning,
            stacklevel=2,
        )
        get_logger().warning("adapter.api_old", adapter=name, api_version=theirs, until=until)
        return
    raise ConfigError(
        _(
            "The adapter {name} was made for version {theirs} of the adapter API. This bridge "
            "has version {ours}."
        ).format(name=name, theirs=theirs, ours=API_VERSION),
        fix=_("Install a newer version of the adapter.")
        if theirs < API_VERSION
        else _("Update the bridge, or install an older version of the adapter."),
    )


def _not_valid(failure: ValidationError, adapter: Adapter, where: str) -> ConfigError:
    """Return the first thing that is wrong, in words; a person mends one after the other."""
    first = failure.errors(include_url=False)[0]
    parts = [str(part) for part in first["loc"] if part != "[key]"]
    key, message = ".".join(filter(None, (where, *parts))), first["msg"]
    field = parts[0] if parts else ""
    fields = adapter.options.model_fields
    about = fields[parts[0]].description if parts and parts[0] in fields else None
    fix = _(about) if about else ""
    match first["type"]:
        case "extra_forbidden":
            text = _("{key}: the adapter {name} has no such option.")
            names = [field.alias or each for each, field in fields.items()]
            fix = _did_you_mean(parts[-1], names)
            fix = fix or _("It has: {names}.").format(names=", ".join(sorted(names)))
        case "missing":
            text = _("{key} is missing: the adapter {name} needs it.")
        case "literal_error":
            known, given = message.split("'")[1::2], str(first["input"])
            text = _("{key}: “{given}” is not one of the choices.").replace("{given}", given[:60])
            fix = _did_you_mean(given, known)
            fix = fix or _("Choose from: {names}.").format(names=", ".join(known))
        case "path_type":
            text = _("{key}: write a path in quotation marks.")
        case _:
            own = first.get("ctx", {}).get("error")  # what a validator raised, as a text
            what = own.args[0] if isinstance(own, ValueError) else message
            text = joined("", (f"{key}: " if key else "", what, "."))
            return ConfigError(text, fix=fix, field=field)
    return ConfigError(text.format(key=key, name=adapter.name), fix=fix, field=field)


def _did_you_mean(word: str, known: Collection[str]) -> str:
    near = nearest(word, known)
    return _("Did you mean {name}?").format(name=near) if near else ""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises ConfigError."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as failure:
        raise ConfigError(
            _("{path} does not exist.").format(path=path), fix=_("Create it, or correct the path.")
        ) from failure
    except (OSError, tomllib.TOMLDecodeError) as failure:
        raise ConfigError(f"{path}: {failure}", fix=_("Correct the file.")) from failure


def first_fault(failure: ValidationError) -> str:
    """Return what is wrong first, with its place; never a value, which may be a customer's."""
    error = failure.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, error["loc"]))
    return f"{place}: {error['msg']}" if place else error["msg"]


def adapters_of(menu: str, orders: str | None) -> list[dict[str, str]]:
    """Return the adapters of a store: `name`, `level`, `part`.

    `part` is "menu" or "orders", or "" where one adapter does both. `level` is bronze, silver,
    gold or none; "" if none is declared.
    """
    both = orders is None or orders == menu
    parts = {"": menu} if both else {"menu": menu, "orders": orders or ""}
    return [{"name": name, "level": level_of(name), "part": part} for part, name in parts.items()]


@cache
def level_of(name: str) -> str:
    """Return the level in the quality.toml beside an adapter's package; "" where there is none."""
    module = module_of(name)
    try:
        spec = importlib.util.find_spec(module) if module is not None else None
        if spec is None or spec.origin is None:
            return ""
        text = (Path(spec.origin).parent / "quality.toml").read_text("utf-8")
        return str(tomllib.loads(text).get("level", ""))
    except (OSError, ValueError, ImportError):
        return ""
