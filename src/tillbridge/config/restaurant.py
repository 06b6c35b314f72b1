"""Reads what a restaurant writes about itself: `settings_file` and `hours_file`; docs/store.md.

Both together, so that everything that is wrong is reported at once, before anything is sent.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tillbridge.config.faults import ConfigFaults, Fault
from tillbridge.config.hours import read_hours_file, read_week
from tillbridge.config.lines import key_lines
from tillbridge.config.table_reader import TableReader, required_file
from tillbridge.config.toml import read_file
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.hours import OpeningHours, Span
from tillbridge.model.money import to_minor
from tillbridge.model.restaurant import Address, DeliveryTerms, Restaurant

if TYPE_CHECKING:
    from tillbridge.config.store import StoreSettings

_TOP = (
    *("name", "description", "image", "phone", "email"),
    *("address", "delivery", "hours", "pass_through"),
)
_ADDRESS = ("street", "city", "state", "country", "zip")
_DELIVERY = ("enabled", "minimum", "fee", "radius_km")
_PASS_THROUGH = "pass_through"  # noqa: S105 -- no password

_FARTHEST_KM = 20_000

_PHONE = re.compile(r"\+?[0-9][0-9 ()./-]{3,24}")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")


@dataclass(frozen=True, slots=True)
class StoreFile:
    """What the file says; `weekly` only where its hours stand there, Monday first."""

    restaurant: Restaurant
    weekly: tuple[tuple[Span, ...], ...] | None = None


def read_store_file(path: Path, *, currency: str, has_hours_file: bool) -> StoreFile:
    """Return what the file says; money in minor units of `currency`.

    Raises ConfigFaults with all that is wrong.
    """
    if fault := required_file(path, "settings_file"):
        raise ConfigFaults(str(path), [fault])
    text, _floats = read_file(path)
    faults: list[Fault] = []
    top = TableReader(tomllib.loads(text, parse_float=Decimal), (), faults)
    told = _store_file(top, currency)
    if has_hours_file and top.has("hours"):
        top.fault(
            "hours",
            _("are told twice: there is an hours_file too."),
            _("Remove this table, or hours_file from bridge.toml."),
        )
    _check_passed_through(top, told, says_hours=has_hours_file or told.weekly is not None)
    if faults:
        lines = key_lines(text)
        raise ConfigFaults(str(path), [fault.placed(lines) for fault in faults])
    return told


def _store_file(top: TableReader, currency: str) -> StoreFile:
    top.only(
        _TOP,
        otherwise=_("If it is a setting of the service's own, write it below [pass_through]."),
    )
    hours = top.table("hours")
    return StoreFile(
        Restaurant(
            name=top.text("name"),
            description=top.text("description", empty=True),
            image=_image(top),
            phone=_matching(top, "phone", _PHONE, "+39 02 1234 5678"),
            email=_matching(top, "email", _EMAIL, "info@example.net"),
            address=_address(top.table("address")),
            delivery=_delivery(top.table("delivery"), currency),
            pass_through=_passed_through(top.table(_PASS_THROUGH)),
        ),
        read_week(hours) if hours else None,
    )


def _image(top: TableReader) -> str | None:
    image = top.text("image", empty=True)
    if not image:
        return image
    try:
        parts = urlsplit(image)
        fine = parts.scheme == "https" and bool(parts.hostname)
    except ValueError:
        fine = False
    if not fine or any(each.isspace() for each in image):
        top.fault(
            "image",
            _("is no https:// URL: the storefront shows pictures from the internet only."),
            _("Put the picture on a web server and write its https:// address."),
        )
    return image


def _matching(table: TableReader, key: str, form: re.Pattern[str], example: str) -> str | None:
    text = table.text(key)
    if text is not None and not form.fullmatch(text):
        kind = _("an e-mail address") if key == "email" else _("a telephone number")
        table.fault(
            key,
            _("is not {kind}.").format(kind=kind),
            _('Write it as in "{example}".').format(example=example),
        )
    return text


def _address(table: TableReader | None) -> Address:
    if table is None:
        return Address()
    table.only(_ADDRESS)
    return Address(**{key: table.text(key, empty=True) for key in _ADDRESS})


def _delivery(table: TableReader | None, currency: str) -> DeliveryTerms:
    if table is None:
        return DeliveryTerms()
    table.only(_DELIVERY)
    return DeliveryTerms(
        enabled=table.flag("enabled"),
        minimum=_money(table, "minimum", currency),
        fee=_money(table, "fee", currency),
        radius_km=_radius(table),
    )


def _money(table: TableReader, key: str, currency: str) -> int | None:
    value = table.values.get(key)
    if value is None:
        return None
    fix = _("Write it in {currency}, for example {key} = {example}.").format(
        currency=currency, key=key, example="15" if _whole(currency) else "15.00"
    )
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        table.fault(key, _("must be an amount of money."), fix)
        return None
    try:
        minor = to_minor(value if isinstance(value, str) else Decimal(value), currency)
    except ArithmeticError:
        table.fault(key, _("is more than any money."), fix)
        return None
    except ValueError as slip:
        table.fault(key, _("is wrong: {slip}.").format(slip=slip), fix)
        return None
    if minor < 0:
        table.fault(key, _("must not be less than nothing."), fix)
        return None
    return minor


def _whole(currency: str) -> bool:
    return to_minor(Decimal(1), currency) == 1


def _radius(table: TableReader) -> str | None:
    value = table.values.get("radius_km")
    if value is None:
        return None
    fine = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if not fine or not Decimal(value).is_finite() or not 0 <= value <= _FARTHEST_KM:
        table.fault(
            "radius_km",
            _("must be a distance in kilometres, from 0 to {most}.").format(most=_FARTHEST_KM),
            _("Write for example radius_km = 4.5, without quotes."),
        )
        return None
    return format(Decimal(value), "f")


def _check_passed_through(top: TableReader, told: StoreFile, *, says_hours: bool) -> None:
    """Note what is passed through although the file has words of its own for it."""
    own = told.restaurant
    said: Mapping[str, Any] = {
        "name": own.name,
        "description": own.description,
        "imageUrl": own.image,
        "availability": says_hours or None,
        "address": {
            "street_address": own.address.street,
            "city": own.address.city,
            "state": own.address.state,
            "country": own.address.country,
            "zip": own.address.zip,
        },
        "deliverySettings": {
            "enabled": own.delivery.enabled,
            "min_order_amount": own.delivery.minimum,
            "delivery_fee": own.delivery.fee,
            "radius_km": own.delivery.radius_km,
        },
        "contactDetails": {"phone": own.phone, "email": own.email},
        "app_id": True,  # the service refuses it: the token says which app this is
    }
    _clashes(TableReader({}, (_PASS_THROUGH,), top.faults), own.pass_through, said)


def _clashes(place: TableReader, more: Mapping[str, Any], said: Mapping[str, Any]) -> None:
    for key, value in more.items():
        before = said.get(key)
        if isinstance(before, Mapping):
            known = {name for name, each in before.items() if each is not None}
            if isinstance(value, Mapping):
                _clashes(TableReader({}, (*place.path, key), place.faults), value, before)
                continue
            before = known or None
        if before is not None:
            place.fault(
                key,
                _("says again what this bridge says in words of its own."),
                _("Remove one of the two."),
            )


def _passed_through(table: TableReader | None) -> Mapping[str, Any]:
    if table is None:
        return {}
    return {key: _json(table, key, value) for key, value in table.values.items()}


def _json(table: TableReader, key: str | int, value: Any) -> Any:  # noqa: ANN401 -- any TOML value
    """Return the JSON value that is meant; dates and infinities have none."""
    inner = TableReader({}, (*table.path, key), table.faults)
    match value:
        case bool() | int() | str():
            return value
        case Decimal() if isfinite(float(value)):
            return float(value)
        case Mapping():
            return {name: _json(inner, name, each) for name, each in value.items()}
        case list():
            return [_json(inner, place, each) for place, each in enumerate(value)]
        case _:
            table.fault(
                key,
                _("cannot be written in JSON, which the service reads."),
                _("Put it in quotes, in the form that the service wants."),
            )
            return None


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """Where the files of a store are; None for what its configuration does not name."""

    settings: Path | None
    hours: Path | None
    currency: str
    timezone: str | None

    @classmethod
    def of(cls, store: "StoreSettings", base_dir: Path) -> "StoreFiles":
        """Return the files of a store; relative ones count from `base_dir`."""
        return cls(
            None if store.settings_file is None else base_dir / store.settings_file,
            None if store.hours_file is None else base_dir / store.hours_file,
            store.currency,
            store.timezone,
        )

    def paths(self) -> tuple[Path, ...]:
        """Return the files there are."""
        return tuple(path for path in (self.settings, self.hours) if path is not None)


@dataclass(frozen=True, slots=True)
class StoreWords:
    """What the files say; `notes` are sentences about days that come."""

    restaurant: Restaurant | None = None
    hours: OpeningHours | None = None
    notes: tuple[str, ...] = ()


def read_store_files(files: StoreFiles, *, today: date) -> StoreWords:
    """Return what the files say. Raises ConfigError with all that is wrong in all of them."""
    wrong: list[ConfigError] = []
    told = StoreFile(Restaurant())
    hours: OpeningHours | None = None
    notes: tuple[str, ...] = ()
    if files.settings is not None:
        try:
            told = read_store_file(
                files.settings, currency=files.currency, has_hours_file=files.hours is not None
            )
        except ConfigError as fault:
            wrong.append(fault)
    if files.hours is not None:
        try:
            found = read_hours_file(files.hours, timezone=files.timezone, today=today)
            hours, notes = found.hours, found.notes
        except ConfigError as fault:
            wrong.append(fault)
    if wrong:
        raise _together(wrong)
    if told.weekly is not None:
        hours = OpeningHours(files.timezone or "", told.weekly)
    restaurant = told.restaurant if files.settings is not None else None
    return StoreWords(restaurant, hours, notes)


def _together(wrong: list[ConfigError]) -> ConfigError:
    if len(wrong) == 1:
        return wrong[0]
    lines = []
    for each in wrong:
        if isinstance(each, ConfigFaults):
            lines += [fault.told(each.file) for fault in each.faults]
        else:
            lines.append(str(each))
    head = _("{count} things are wrong").format(count=len(lines))
    return ConfigError(
        "\n".join([f"{head}:", *(f"  {line}" for line in lines)]),
        fix=_("Mend them and try again."),
    )
