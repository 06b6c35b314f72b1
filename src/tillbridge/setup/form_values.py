"""Fields of a settings form: what the file says as text, and text as what the file says. Pure.

The kind of a field follows from the annotation of its setting in `config/`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from tillbridge.config import Settings
from tillbridge.config.secrets import SecretSource
from tillbridge.config.toml import KeyPath, value_at
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.setup.sections import Setting, SettingsSection

Kind = Literal["text", "number", "flag", "choice", "lines", "secret"]

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
    info = _info(setting.path)
    kind, choices, number = _kind(info.annotation)
    if kind == "text" and setting.labels:
        kind, choices = "choice", tuple(setting.labels)
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


def _info(path: str) -> FieldInfo:
    """Return the field of the model that is at a dotted key."""
    model: Any = Settings
    info: FieldInfo | None = None
    for part in path.split("."):
        if part == "{store}":  # a table of tables: the model stays that of the entries
            continue
        info = model.model_fields[part]
        model = next((each for each in _leaves(info.annotation) if _is_model(each)), None)
    if info is None:
        raise LookupError(path)
    return info


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel) and kind is not SecretSource


def _leaves(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 -- annotations are of any kind
    """Yield the types that an annotation is made of, but for None."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif origin in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _leaves(each)
    elif origin is dict:
        yield from _leaves(get_args(annotation)[1])
    elif annotation is not NoneType:
        yield annotation


def _kind(annotation: Any) -> tuple[Kind, tuple[str, ...], type | None]:  # noqa: ANN401 -- (as above)
    leaves = list(_leaves(annotation))
    first = leaves[0]
    if SecretStr in leaves:
        return "secret", (), None
    if get_origin(first) is Literal:
        return "choice", tuple(map(str, get_args(first))), None
    if get_origin(first) is list:
        (inner,) = _leaves(get_args(first)[0])
        return "lines", (), inner if inner in {int, float} else None
    if first is bool:
        return "flag", (), None
    if first in {int, float}:
        return "number", (), first
    return "text", (), None


def shown(field: FormField, value: object) -> str:
    """Return what the form holds for a value of the file; "" for none, and for every secret."""
    if field.kind in {"flag", "choice"}:
        value = field.default if value is None else value
    if value is None or field.kind == "secret":
        return ""
    if field.kind == "lines":
        return "\n".join(map(_plain, value if isinstance(value, list) else [value]))
    return _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def default_of(field: FormField) -> str:
    """Return the default as the form shows it in an empty field."""
    if field.default is None or field.kind == "secret":
        return ""
    if field.kind == "lines":
        return ", ".join(map(_plain, field.default))
    return _plain(field.default)


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
