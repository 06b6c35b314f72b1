"""What a person says to sign up, checked before anything is sent. Pure.

Each field has the name of its option on the command line.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tillbridge.core.i18n import _
from tillbridge.service.oauth import SignupAddress, SignupRequest

_EMAIL = re.compile(r"[^@\s,;<>]+@[^@\s,;<>.]+(\.[^@\s,;<>.]+)+")
_PHONE = re.compile(r"\+[1-9]\d{6,14}")
_LOCALE = re.compile(r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|\d{3}))?", re.IGNORECASE)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class FormFault:
    """What is wrong with one field (an option's name), and what to write instead."""

    field: str
    text: str
    fix: str

    def __str__(self) -> str:
        return f"--{self.field}: {self.text} {self.fix}"


@dataclass(frozen=True, slots=True)
class FormField:
    """A field: its option, what a person is asked, and whether it must be filled in."""

    name: str
    question: str
    required: bool = False


FIELDS = (
    FormField("store-name", _("Name of the store, as guests know it"), required=True),
    FormField("email", _("E-mail of the merchant, who will sign in with it"), required=True),
    FormField("first-name", _("First name")),
    FormField("last-name", _("Last name")),
    FormField("phone", _("Business phone, with the country's code (+39 02 1234567)")),
    FormField("street", _("Street and number")),
    FormField("city", _("City")),
    FormField("state", _("State or province")),
    FormField("zip", _("Postal code")),
    FormField("country", _("Country")),
    FormField("locale", _("Language and region (en-US, it-IT)")),
)


def missing(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the required fields that say nothing."""
    return tuple(
        each.name for each in FIELDS if each.required and not values.get(each.name, "").strip()
    )


def fault_of(name: str, value: str) -> FormFault | None:
    """Return what is wrong with one field; None where it is right, or says nothing."""
    text = " ".join(value.split())
    if not text:
        return None
    if len(text) > _LONGEST or not text.isprintable():
        return FormFault(name, _("is too long, or has signs in it."), _("Write it in one line."))
    if name == "email" and not _EMAIL.fullmatch(text):
        return FormFault(name, _("is no e-mail address."), _("Write it as name@example.com."))
    if name == "phone" and not _PHONE.fullmatch(_digits(text)):
        return FormFault(
            name,
            _("is no phone number in international format."),
            _("Begin with + and the country's code: +39 02 1234567."),
        )
    if name == "locale" and not _LOCALE.fullmatch(text.replace("_", "-")):
        return FormFault(name, _("is no language and region."), _("Write for example en-US."))
    return None


def faults_of(values: Mapping[str, str]) -> tuple[FormFault, ...]:
    """Return everything that is wrong, in the order of the fields."""
    found = (fault_of(each.name, values.get(each.name, "")) for each in FIELDS)
    return tuple(fault for fault in found if fault is not None)


def request_of(values: Mapping[str, str], *, location_id: str, flow_type: str) -> SignupRequest:
    """Return what is sent for a form without faults."""

    def said(name: str) -> str:
        return " ".join(values.get(name, "").split())

    return SignupRequest(
        email=said("email"),
        store_name=said("store-name"),
        location_id=location_id,
        first_name=said("first-name"),
        last_name=said("last-name"),
        business_phone=_digits(said("phone")),
        address=SignupAddress(
            street_address=said("street"),
            city=said("city"),
            state=said("state"),
            country=said("country"),
            zip=said("zip"),
        ),
        locale=_locale(said("locale")),
        flow_type=flow_type,
    )


def _digits(phone: str) -> str:
    """Return a phone number without what people put between its digits."""
    bare = re.sub(r"[\s().\-/]", "", phone)
    return f"+{bare[2:]}" if bare.startswith("00") else bare


def _locale(text: str) -> str:
    found = _LOCALE.fullmatch(text.replace("_", "-"))
    if found is None:
        return ""
    language, script, region = found.groups()
    parts = (language.lower(), script.title() if script else "", (region or "").upper())
    return "-".join(part for part in parts if part)
