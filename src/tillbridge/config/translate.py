"""Turns what pydantic found into faults in plain words, with lines and the nearest valid key."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, TypeGuard, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tillbridge.config.bridge import PageUser, Settings
from tillbridge.config.secrets import SecretSource
from tillbridge.config.toml import Fault, KeyPath, Written, dotted, value_at
from tillbridge.config.values import INVALID
from tillbridge.core.errors import nearest
from tillbridge.core.i18n import _

Section = type[BaseModel]
M = TypeVar("M", bound=BaseModel)

# Written within a line of another table.
_INLINE = (SecretSource, PageUser)


# Settings that are a text or say where one is.
_SECRETS = {"client_secret", "key", "password", "secret", "url", "urls"}


def faults_of(
    error: ValidationError, document: Mapping[str, Any], root: Section = Settings
) -> Iterator[Fault]:
    """Return a fault for each error; `document` was validated by `root`. Values are never shown."""
    for found in error.errors(include_url=False, include_input=False):
        yield _fault(found, _real_path(found["loc"]), document, root)


def validated(model: type[M], written: Written, **context: object) -> M:
    """Return what a text says as that model. Raises ConfigFaults with all that is wrong."""
    try:
        return model.model_validate(written.document, context=context)
    except ValidationError as error:
        faults = list(faults_of(error, written.document, model))
    written.check(faults)  # out here, so that the fault does not carry what was written
    msg = "an error of the model without a fault"
    raise AssertionError(msg)


def unknown_key(path: KeyPath, root: Section = Settings) -> Fault:
    """Return the fault of a key that is no setting, with the one that was probably meant."""
    *parents, key = path
    section = _section(tuple(parents), root)
    table = f"[{dotted(tuple(parents))}]" if parents else _("the top of the file")
    known = list(section.model_fields) if section else []
    fix = did_you_mean(str(key), known) or getattr(section, "unknown_key_fix", "")
    if not fix:
        homes = [place for place, home in TABLES.items() if root is Settings and place]
        homes = [f"[{place}]" for place in homes if key in TABLES[place].model_fields]
        if homes:
            fix = _("It belongs in {place}.").format(place=homes[0])
        elif known:
            fix = _("Remove it. {table} can have: {known}.").format(
                table=table, known=", ".join(sorted(known))
            )
        else:
            fix = _("Remove it.")
    return Fault(path, _("is not a setting of {table}.").format(table=table), fix)


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return "Did you mean ...?" for the nearest known word; "" where none is near."""
    low = word.lower()
    begun = [each for each in known if len(low) > 1 and each.startswith(low)]
    close = begun[0] if begun else nearest(low, known)
    return _('Did you mean "{key}"?').format(key=close) if close else ""


def _real_path(location: Sequence[str | int]) -> KeyPath:
    """Drop what pydantic adds to a path: tags of unions, and the mark of a mapping's key."""
    path: list[str | int] = []
    for part in location:
        named = [each for each in path[-2:] if isinstance(each, str)]
        if part == "[key]" or (part in {"text", "source"} and named[-1:] and named[-1] in _SECRETS):
            continue
        path.append(part)
    return tuple(path)


def _section(path: KeyPath, root: Section) -> Section | None:
    """Return the model of the table that is at a path."""
    here: Any = root
    for part in path:
        here = _at(here, part)
    return next((each for each in _kinds(here) if _is_model(each)), None)


def _at(annotation: Any, part: str | int) -> Any:  # noqa: ANN401 -- annotations are of any kind
    """Return the annotation of what is at a key or position; None if nothing is known."""
    for kind in _kinds(annotation):
        if _is_model(kind):
            if part in kind.model_fields:
                return kind.model_fields[str(part)].annotation
        elif get_origin(kind) is list and isinstance(part, int):
            return get_args(kind)[0]
        elif get_origin(kind) is dict:
            return get_args(kind)[1]
    return None


def _is_model(annotation: object) -> TypeGuard[Section]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _kinds(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 -- (as above)
    """Return the models, lists and mappings that an annotation allows."""
    origin = get_origin(annotation)
    if origin in {list, dict} or _is_model(annotation):
        yield annotation
    elif origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif origin in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _kinds(each)


def _tables(section: Section, place: str = "") -> Iterator[tuple[str, Section]]:
    """Yield the tables from a place of the file on, as they are written there."""
    yield place, section
    for name, field in section.model_fields.items():
        below = f"{place}.{name}" if place else name
        for kind in _kinds(field.annotation):
            named = get_origin(kind) is dict
            for each in _kinds(get_args(kind)[1]) if named else (kind,):
                if _is_model(each) and each not in _INLINE:
                    yield from _tables(each, f"{below}.NAME" if named else below)


# The tables of the file, as they are written there.
TABLES: Mapping[str, Section] = dict(_tables(Settings))


def _fault(found: ErrorDetails, path: KeyPath, document: Mapping[str, Any], root: Section) -> Fault:
    kind = found["type"]
    context = found.get("ctx", {})
    if kind == "missing":
        return Fault(path, _("is missing."), _how_to_add(path, root))
    if kind == "extra_forbidden":
        return unknown_key(path, root)
    if kind == INVALID:
        return Fault(path, context["text"], context["fix"])
    if kind == "value_error":
        return Fault(path, f"{context['error']}.", _how(path, root))
    if kind == "string_pattern_mismatch":
        return Fault(path, _PATTERNS.get(context["pattern"], _("has the wrong form.")), "")
    text = found["msg"][:1].lower() + found["msg"][1:] + "."
    if (describe := _DESCRIPTIONS.get(kind)) is not None:
        text = describe(context, _given(path, document))
    return Fault(path, text, _how(path, root))


_NO_STORE = _(
    "Set one up on the page (run “tillbridge run”, then open Set-up), or write a table "
    "[stores.NAME]; see docs/setup.md."
)


def _how_to_add(path: KeyPath, root: Section) -> str:
    if path == ("stores",):
        return _NO_STORE
    field, _section_of_it = field_at(path, root)
    if field is None:
        return _("Add it.")
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "fix" in extra:
        return str(extra["fix"])
    if not field.description:
        return _("Add it.")
    return _("Add it: {meaning}").format(meaning=field.description)


def field_at(path: KeyPath, root: Section = Settings) -> tuple[FieldInfo | None, Section | None]:
    """Return the field at a key, any name standing for that of a table, and the field's model."""
    *parents, name = path
    section = _section(tuple(parents), root)
    return (section.model_fields.get(str(name)) if section else None), section


def _how(path: KeyPath, root: Section) -> str:
    if not path:
        return ""
    field, section = field_at(path, root)
    if field is None or section is None:
        return ""
    if field.is_required() or field.default is None or issubclass(section, SecretSource):
        return ""
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel | dict | list):
        return ""
    return _("Default: {default}.").format(default=toml_value(default))


def toml_value(value: object) -> str:
    """Return a default as it would be written in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _given(path: KeyPath, document: Mapping[str, Any]) -> str:
    """Return the kind of value that is there, never the value."""
    value = value_at(document, path)
    if value is None:
        return _("something else")
    if isinstance(value, bool):
        return _("true or false")
    if isinstance(value, int | float):
        return _("a number")
    if isinstance(value, str):
        return _("text in quotes")
    if isinstance(value, dict):
        return _("a table")
    return _("a list") if isinstance(value, list) else _("a date or time")


def _must(phrase: str) -> Callable[[Mapping[str, Any], str], str]:
    return lambda context, given: _("must be {words}, not {given}.").format(
        words=phrase.format(**context), given=given
    )


def _bound(phrase: str) -> Callable[[Mapping[str, Any], str], str]:
    return lambda context, _given: _("must be {words}.").format(
        words=phrase.format(**{name: _plain(value) for name, value in context.items()})
    )


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value).replace("'", '"')


_DESCRIPTIONS: Mapping[str, Callable[[Mapping[str, Any], str], str]] = {
    "string_type": _must(_("text in quotes")),
    "path_type": _must(_("a path in quotes")),
    "int_type": _must(_("a whole number without quotes")),
    "int_from_float": _bound(_("a whole number")),
    "float_type": _must(_("a number without quotes")),
    "finite_number": _bound(_("a finite number")),
    "bool_type": _must(_("true or false, without quotes")),
    "dict_type": _must(_("a table")),
    "model_type": _must(_("a table")),
    "model_attributes_type": _must(_("a table")),
    "list_type": _must(_("a list")),
    "greater_than": _bound(_("more than {gt}")),
    "greater_than_equal": _bound(_("{ge} or more")),
    "less_than": _bound(_("less than {lt}")),
    "less_than_equal": _bound(_("{le} or less")),
    "literal_error": _bound(_("one of {expected}")),
    "enum": _bound(_("one of {expected}")),
    "string_too_short": lambda _context, _given: _("must not be empty."),
    "too_short": lambda _context, _given: _("must not be empty."),
}

_PATTERNS: Mapping[str, str] = {
    r"^[^@\s<>\",;]+@[^@\s<>\",;]+$": _(
        'must be an e-mail address, for example "anna@example.com".'
    ),
    r"^(|/[A-Za-z0-9._~/-]+)$": _('must be the end of an address, for example "/fail", or "".'),
    r"^[a-z0-9][a-z0-9_-]{0,62}$": _(
        "cannot be a store's name, which is part of the webhook's address. Use lower-case "
        "letters, digits, - and _, for example [stores.main]."
    ),
    r"^[A-Za-z0-9._@-]+$": _(
        "cannot be a user name. Use letters, digits and . _ @ -, for example "
        "[status_page.users.anna]."
    ),
    r"^[A-Za-z0-9._:-]+$": _(
        'must be a plain host name, for example "till.lan", without http:// and without a port.'
    ),
    r"^[a-z]{2}(-[A-Z]{2})?$": _(
        'must be a language, for example "de", or a language and a country: "de-AT".'
    ),
    r"^[^/\\]+$": _("must be the credential's name, not a path."),
}
