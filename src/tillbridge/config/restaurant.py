"""Reads what a restaurant writes about itself: `settings_file` and `hours_file`; docs/store.md.

Both together, so that everything that is wrong is reported at once, before anything is sent.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from tillbridge.config.hours import Week, read_hours_file
from tillbridge.config.store import StoreSettings
from tillbridge.config.toml import ConfigFaults, Fault, KeyPath, Written, read_named_file
from tillbridge.config.translate import validated
from tillbridge.config.values import FilledText, Section, Text, invalid
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _, joined
from tillbridge.model.money import to_minor
from tillbridge.model.numbers import map_leaves
from tillbridge.model.restaurant import OpeningHours

_FARTHEST_KM = 20_000

_PHONE = re.compile(r"\+?[0-9][0-9 ()./-]{3,24}")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")


def _image(image: str) -> str:
    try:
        parts = urlsplit(image)
        fine = parts.scheme == "https" and bool(parts.hostname)
    except ValueError:
        fine = False
    if image and (not fine or any(each.isspace() for each in image)):
        raise invalid(
            _("is not an https:// address: the storefront shows only pictures from the internet."),
            _("Put the picture on a web server, and enter its https:// address."),
        )
    return image


def _matching(form: re.Pattern[str], kind: str, example: str) -> AfterValidator:
    def check(text: str) -> str:
        if not form.fullmatch(text):
            raise invalid(
                _("is not {kind}.").format(kind=kind),
                _('Write it as in "{example}".').format(example=example),
            )
        return text

    return AfterValidator(check)


def _money(value: object, info: ValidationInfo) -> int:
    """Return an amount in minor units of the store's currency."""
    currency = info.context["currency"] if info.context else ""
    whole = to_minor(Decimal(1), currency) == 1
    fix = _("Write the amount in {currency}, for example {key} = {example}.").format(
        currency=currency, key=info.field_name, example="15" if whole else "15.00"
    )
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise invalid(_("must be an amount of money."), fix)
    try:
        minor = to_minor(value if isinstance(value, str) else Decimal(value), currency)
    except ArithmeticError:
        raise invalid(_("is too large for an amount of money."), fix) from None
    except ValueError as wrong:
        raise invalid(_("is wrong: {slip}.").format(slip=wrong), fix) from None
    if minor < 0:
        raise invalid(_("must not be negative."), fix)
    return minor


def _radius(value: object) -> str:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | Decimal)
        or not Decimal(value).is_finite()
        or not 0 <= value <= _FARTHEST_KM
    ):
        raise invalid(
            _("must be a distance in kilometres, from 0 to {most}.").format(most=_FARTHEST_KM),
            _("Write for example radius_km = 4.5, without quotes."),
        )
    return format(Decimal(value), "f")


def _json(value: object) -> object:
    """Return the JSON value that is meant; dates and infinities have none."""
    match value:
        case bool() | int() | str():
            return value
        case Decimal() if isfinite(float(value)):
            return float(value)
        case _:
            raise invalid(
                _("cannot be written as JSON, which the service needs."),
                _("Put it in quotes, in the form the service expects."),
            )


Money = Annotated[int | None, BeforeValidator(_money)]
JsonValues = Annotated[Any, AfterValidator(lambda value: map_leaves(value, _json))]


class Address(Section, use_attribute_docstrings=False):
    """Where the restaurant is."""

    street: Text | None = None
    city: Text | None = None
    state: Text | None = None
    country: Text | None = None
    zip: Text | None = None


class DeliveryTerms(Section, use_attribute_docstrings=False):
    """How it delivers; `minimum` and `fee` in minor units, `radius_km` as decimal text."""

    enabled: bool | None = None
    minimum: Money = None
    fee: Money = None
    radius_km: Annotated[str | None, BeforeValidator(_radius)] = None


class Restaurant(Section, use_attribute_docstrings=False):
    """The settings file. None is what it leaves open: the service keeps what it has.

    `pass_through` is sent as it stands (JSON values).
    """

    unknown_key_fix: ClassVar[str] = _(
        "If the service has such a setting, write it below [pass_through]."
    )

    name: FilledText | None = None
    description: Text | None = None
    image: Annotated[Text, AfterValidator(_image)] | None = None
    phone: (
        Annotated[FilledText, _matching(_PHONE, _("a telephone number"), "+39 02 1234 5678")] | None
    ) = None
    email: (
        Annotated[FilledText, _matching(_EMAIL, _("an e-mail address"), "info@example.net")] | None
    ) = None
    address: Address = Address()
    delivery: DeliveryTerms = DeliveryTerms()
    hours: Week | None = None
    pass_through: dict[str, JsonValues] = Field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Return what of it the service has a field for, as its store settings call that."""
        address, delivery = self.address, self.delivery
        radius = delivery.radius_km
        return _given(
            {
                "name": self.name,
                "description": self.description,
                "imageUrl": self.image,
                "address": _given(
                    {
                        "street_address": address.street,
                        "city": address.city,
                        "state": address.state,
                        "country": address.country,
                        "zip": address.zip,
                    }
                ),
                "deliverySettings": _given(
                    {
                        "enabled": delivery.enabled,
                        "min_order_amount": delivery.minimum,
                        "delivery_fee": delivery.fee,
                        "radius_km": radius and (float(radius) if "." in radius else int(radius)),
                    }
                ),
                "contactDetails": _given({"phone": self.phone, "email": self.email}),
            }
        )


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out missing values, and objects without any."""
    return {key: value for key, value in values.items() if value is not None and value != {}}


def _read_settings(path: Path, *, currency: str, has_hours_file: bool) -> Restaurant:
    """Return what the file says, money in minor units of `currency`.

    Raises ConfigFaults with all that is wrong.
    """
    text = read_named_file(path, "settings_file").text
    written = Written(path, text, tomllib.loads(text, parse_float=Decimal))
    restaurant = validated(Restaurant, written, currency=currency)
    written.check(_repeated(restaurant, has_hours_file=has_hours_file))
    return restaurant


def _repeated(restaurant: Restaurant, *, has_hours_file: bool) -> Iterator[Fault]:
    """Yield a fault for what is in two places."""
    if has_hours_file and restaurant.hours is not None:
        yield Fault(
            ("hours",),
            _("are set twice: there is also an hours_file."),
            _("Remove this table, or remove hours_file from bridge.toml."),
        )
    own: dict[str, Any] = {
        **restaurant.body(),
        "app_id": True,  # the service refuses it: the token says which app this is
    }
    if has_hours_file or restaurant.hours is not None:
        own["availability"] = True
    yield from _clashes(("pass_through",), restaurant.pass_through, own)


def _clashes(path: KeyPath, more: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[Fault]:
    for key, value in more.items():
        before = own.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            yield from _clashes((*path, key), value, before)
        elif before is not None:
            yield Fault(
                (*path, key),
                _("repeats a setting that the bridge sets itself."),
                _("Remove one of them."),
            )


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """Where the files of a store are; None for what its configuration does not name."""

    settings: Path | None
    hours: Path | None
    currency: str
    timezone: str | None

    @classmethod
    def of(cls, store: StoreSettings, base_dir: Path) -> "StoreFiles":
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
class StoreDetails:
    """What the files hold; `notes` are sentences about days that come."""

    restaurant: Restaurant | None = None
    hours: OpeningHours | None = None
    notes: tuple[str, ...] = ()


def read_store_files(files: StoreFiles, *, today: date) -> StoreDetails:
    """Return what the files say. Raises ConfigError with all that is wrong in all of them."""
    wrong: list[ConfigError] = []
    found = StoreDetails()
    if files.settings is not None:
        try:
            restaurant = _read_settings(
                files.settings, currency=files.currency, has_hours_file=files.hours is not None
            )
            week = restaurant.hours
            hours = None if week is None else OpeningHours(files.timezone or "", week.spans())
            found = StoreDetails(restaurant, hours)
        except ConfigError as fault:
            wrong.append(fault)
    if files.hours is not None:
        try:
            file = read_hours_file(files.hours, timezone=files.timezone, today=today)
            found = replace(found, hours=file.hours, notes=file.notes)
        except ConfigError as fault:
            wrong.append(fault)
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        lines = [
            line
            for each in wrong
            for line in (
                [fault.sentence(each.file) for fault in each.faults]
                if isinstance(each, ConfigFaults)
                else [str(each)]
            )
        ]
        head = _("{count} settings are wrong").format(count=len(lines))
        raise ConfigError(
            joined("\n", [head + ":", *(joined("", ("  ", line)) for line in lines)]),
            fix=_("Correct them, then try again."),
        )
    return found
