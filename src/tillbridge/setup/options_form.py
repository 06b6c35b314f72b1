"""An adapter's options as a form: fields made from its own model, and what a person typed. Pure."""

import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tillbridge.adapter import AdapterOptions
from tillbridge.adapter.registration import FILE_ONLY
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

Kind = Literal["text", "path", "number", "choice", "flag", "secret", "pairs", "lines"]


@dataclass(frozen=True, slots=True)
class OptionField:
    """A field of the form; `usual` is what counts where it is left empty, "" for nothing."""

    name: str
    kind: Kind
    hint: str
    required: bool
    value: str
    usual: str = ""
    choices: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it for the page."""
        return {**asdict(self), "choices": list(self.choices)}


def fields_of(options: type[AdapterOptions], said: Mapping[str, Any]) -> list[OptionField]:
    """Return a field for each option, those that must be filled in first; `said` is what holds.

    An option that only the file may set has none.
    """
    found = [
        _field(info.alias or name, info, said.get(info.alias or name))
        for name, info in options.model_fields.items()
        if not _is_file_only(info)
    ]
    return sorted(found, key=lambda field: not field.required)


def said_in(options: type[AdapterOptions], form: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that a form says, as they are to stand in the file; empty fields do not.

    Raises ConfigError, which names the field. The model itself judges the rest.
    """
    said: dict[str, Any] = {}
    for name, info in options.model_fields.items():
        key = info.alias or name
        text = form.get(key, "").strip()
        if text and not _is_file_only(info):
            said[key] = _parsed(key, _kind(info.annotation), text, info)
    return said


def file_only(options: type[AdapterOptions]) -> dict[str, bool]:
    """Return the options that only the file may set, and whether the adapter needs each.

    They say which program is started, and the page may be open to whoever uses the machine.
    """
    return {
        info.alias or name: info.is_required()
        for name, info in options.model_fields.items()
        if _is_file_only(info)
    }


def _is_file_only(info: FieldInfo) -> bool:
    extra = info.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get(FILE_ONLY))


def _field(name: str, info: FieldInfo, value: object) -> OptionField:
    kind = _kind(info.annotation)
    default = info.get_default(call_default_factory=True)
    has_default = default is not PydanticUndefined and default not in (None, "", {}, [])
    return OptionField(
        name,
        kind,
        info.description or "",
        required=info.is_required(),
        value="" if value is None or kind == "secret" else _shown(value),
        usual=_shown(default) if has_default else "",
        choices=_choices(info.annotation),
    )


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "\n".join(f"{key} = {each}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(str(each) for each in value)
    return str(value)


def _parsed(name: str, kind: Kind, text: str, info: FieldInfo) -> Any:  # noqa: ANN401 -- TOML value
    if kind == "flag":
        return text == "true"
    if kind == "number":
        return _number(name, text, whole=_plain(info.annotation) is int)
    if kind == "pairs":
        return _pairs(name, text)
    if kind == "lines":
        return [line.strip() for line in text.splitlines() if line.strip()]
    return text


def _number(name: str, text: str, *, whole: bool) -> int | float:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        raise ConfigError(
            _("{name}: that is no number.").format(name=name), fix=_("Write it in digits.")
        ) from None
    return int(number) if number.is_integer() and (whole or "." not in text) else number


def _pairs(name: str, text: str) -> dict[str, str]:
    pairs = {}
    for line in filter(str.strip, text.splitlines()):
        key, sign, value = line.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise ConfigError(
                _("{name}: a line is not NAME = VALUE.").format(name=name),
                fix=_("Write one on each line, for example: price = Preis"),
            )
        pairs[key.strip()] = value.strip()
    return pairs


def _kind(annotation: Any) -> Kind:  # noqa: ANN401 -- whatever a model declares
    plain = _plain(annotation)
    origin = get_origin(plain) or plain
    if origin is Literal:
        return "choice"
    kinds: Mapping[Any, Kind] = {
        bool: "flag",
        int: "number",
        float: "number",
        Path: "path",
        SecretStr: "secret",
        dict: "pairs",
        list: "lines",
        tuple: "lines",
    }
    return kinds.get(origin, "text")


def _choices(annotation: Any) -> tuple[str, ...]:  # noqa: ANN401 -- (as above)
    plain = _plain(annotation)
    return tuple(map(str, get_args(plain))) if get_origin(plain) is Literal else ()


def _plain(annotation: Any) -> Any:  # noqa: ANN401 -- (as above)
    """Return what is left of a type without Annotated and without None."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in {Union, types.UnionType}:
            parts = [each for each in get_args(annotation) if each is not types.NoneType]
            if SecretStr in {_plain(each) for each in parts}:
                return SecretStr
            if len(parts) != 1:
                return str
            annotation = parts[0]
        else:
            return annotation
