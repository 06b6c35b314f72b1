"""The steps of setting up, and the answers given there that the file does not have yet. Pure.

They hold no secret: the app's goes to the vault when it is given. The ledger stores them, so that
a person continues where they were after a restart.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tillbridge.config.store import OrderSettings, PosSettings
from tillbridge.config.toml import KeyPath, value_at
from tillbridge.core.i18n import _, ngettext

State = Literal["done", "open", "shut"]

# With their titles, in this order; each is tested before the next one opens.
STEPS = {
    "service": _("The ordering service"),
    "sign_in": _("Sign-in"),
    "store": _("The store"),
    "adapter": _("The till"),
    "address": _("The public address"),
    "save": _("Save and restart"),
    "order": _("The first order"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one step: whether it is done, in words, and what to do where it is not.

    `field` is the field of its form that is wrong.
    """

    done: bool
    text: str = ""
    fix: str = ""
    field: str = ""


def done(text: str, **values: object) -> Finding:
    """Return that a step is done; `values` go into the text."""
    return Finding(done=True, text=text.format(**values))


def not_done(text: str, fix: str = "", *, field: str = "", **values: object) -> Finding:
    """Return that a step is not done, and what to do; `values` go into both."""
    return Finding(done=False, text=text.format(**values), fix=fix.format(**values), field=field)


@dataclass(frozen=True, slots=True)
class Step:
    """A step as it is shown. Only one that is `open` or `done` can be taken (again)."""

    name: str
    state: State
    text: str = ""
    fix: str = ""


def steps_of(findings: Mapping[str, Finding]) -> tuple[Step, ...]:
    """Return all steps: those done, the first that is not, and those that wait for it.

    A step that was done once and comes after one that is not stays done, so that a person sees
    what is still good; what depends on the other is the caller's to say.
    """
    found: list[Step] = []
    is_open = True
    for name in STEPS:
        finding = findings.get(name, Finding(done=False))
        state: State = "done" if finding.done else "open" if is_open else "shut"
        is_open = is_open and finding.done
        found.append(Step(name, state, finding.text, finding.fix))
    return tuple(found)


def next_step(steps: tuple[Step, ...]) -> str:
    """Return the name of the step to take now; "" where all are done."""
    return next((step.name for step in steps if step.state != "done"), "")


# Keys of [stores.NAME.pos] and [stores.NAME.orders] that are the bridge's own, not an adapter's.
_OWN_POS = frozenset(PosSettings.model_fields)
_OWN_ORDERS = frozenset(OrderSettings.model_fields)
# What has to be tested again once a step is repeated.
_AFTER: Mapping[str, tuple[str, ...]] = {
    "service": ("app", "sign_in", "store"),
    "app": ("sign_in", "store"),
    "sign_in": ("store",),
    "menu": ("adapter",),
}
# Each answer: the test that it belongs to, and where it is in the file, "" for what is not one key.
_ANSWERS: Mapping[str, tuple[str, str]] = {
    "base_url": ("service", "service.base_url"),
    "client_id": ("app", "service.client_id"),
    "client_secret": ("app", "service.client_secret"),
    "redirect_uri": ("app", "service.redirect_uri"),
    "store": ("store", ""),
    "store_id": ("store", "stores.{store}.store_id"),
    "location_id": ("store", "stores.{store}.location_id"),
    "currency": ("store", "stores.{store}.currency"),
    "hours_file": ("store", "stores.{store}.hours_file"),
    "pos": ("menu", ""),
    "orders": ("adapter", ""),
    "listen": ("address", "receiver.listen"),
    "public_url": ("address", "receiver.public_url"),
}
_STEP_OF: Mapping[str, str] = {"app": "sign_in", "menu": "adapter"}


class Draft(BaseModel):
    """The answers: what was given on the page, and else what the file says; "" and {} for nothing.

    `client_secret` says that the vault has a new one. `pos` and `orders` are an adapter and its
    options as they are to be in the file; without `orders` the till's own adapter writes them.
    `found` says by step what its test found; beside the steps there are `app`, whose id and secret
    the service knows, and `menu`, which the till's adapter reads while another one still has to be
    found for its orders.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    base_url: str = ""
    client_id: str = ""
    client_secret: dict[str, bool] = {}
    redirect_uri: str = ""
    store: str = "main"
    store_id: str = ""
    location_id: str = ""
    currency: str = ""
    hours_file: str = ""
    pos: dict[str, Any] = {}
    orders: dict[str, Any] = {}
    listen: str = ""
    public_url: str = ""
    found: dict[str, str] = {}

    def with_answers(self, **answers: Any) -> "Draft":  # noqa: ANN401 -- of any field
        """Return the draft with these answers."""
        return self.model_copy(update=answers)

    def passed(self, step: str, text: str, **answers: Any) -> "Draft":  # noqa: ANN401 -- of any field
        """Return the draft after a step's test has succeeded; what depends on it is open again."""
        return self.failed(step, **answers).with_found(step, text)

    def failed(self, step: str, **answers: Any) -> "Draft":  # noqa: ANN401 -- of any field
        """Return the draft after a step's test has failed; what depends on it is open again."""
        open_again = (step, *_AFTER.get(step, ()))
        found = {name: text for name, text in self.found.items() if name not in open_again}
        return self.with_answers(**answers, found=found)

    def with_found(self, step: str, text: str) -> "Draft":
        """Return the draft with what a step's test has found."""
        return self.with_answers(found={**self.found, step: text})

    def findings(self) -> dict[str, Finding]:
        """Return a finding for each step that has been tested."""
        return {name: Finding(done=True, text=text) for name, text in self.found.items()}


class _Unwritten(BaseModel):
    """What the ledger stores: answers that the file does not have, and what the tests found.

    `beside` has by answer a digest of the file's value when they were given. Where somebody has
    edited the file since, the file counts.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    answers: dict[str, Any]
    found: dict[str, str]
    beside: dict[str, str]


def _keys(store: str) -> dict[str, KeyPath]:
    """Return where answers are in the file."""
    return {
        answer: tuple(store if part == "{store}" else part for part in path.split("."))
        for answer, (_test, path) in _ANSWERS.items()
        if path
    }


def _filed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the file says, by answer, of its first store; None for nothing."""
    name = next(iter(_table(document, "stores")), "main")
    return {
        **{answer: value_at(document, path) for answer, path in _keys(name).items()},
        "store": name,
        "pos": _adapter_part(_table(document, "stores", name, "pos"), _OWN_POS),
        "orders": _adapter_part(_table(document, "stores", name, "orders"), _OWN_ORDERS),
    }


def draft_of(document: Mapping[str, Any], stored: object = None) -> Draft:
    """Return the answers: those of the file, and `stored` ones that it does not have."""
    filed = _filed(document)
    of_file = {
        name: value
        for name, value in filed.items()
        if name != "client_secret" and isinstance(value, str | dict)
    }
    draft = Draft.model_validate(of_file)
    try:
        unwritten = _Unwritten.model_validate(stored)
        edited = {
            name for name, value in filed.items() if unwritten.beside.get(name) != digest_of(value)
        }
        answers = {name: each for name, each in unwritten.answers.items() if name not in edited}
        draft = Draft.model_validate({**of_file, **answers, "found": unwritten.found})
    except ValidationError:  # nothing, or what another version stored
        return draft
    for name in edited:
        draft = draft.failed(_ANSWERS[name][0])
    return draft


def unwritten_of(draft: Draft, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what to store of a draft beside this file, which `draft_of` understands."""
    of_file = draft_of(document)
    filed = _filed(document)
    answers = {name: getattr(draft, name) for name in filed}
    return _Unwritten(
        answers={name: each for name, each in answers.items() if each != getattr(of_file, name)},
        found=draft.found,
        beside={name: digest_of(value) for name, value in filed.items()},
    ).model_dump()


def steps_changed(draft: Draft, document: Mapping[str, Any]) -> set[str]:
    """Return the steps whose answers the file does not have yet."""
    tests = {_ANSWERS[name][0] for name in unwritten_of(draft, document)["answers"]}
    return {_STEP_OF.get(test, test) for test in tests}


def changes_of(draft: Draft, document: Mapping[str, Any]) -> dict[KeyPath, Any]:
    """Return what the draft changes in a file: only what was given, and differs."""
    pos: KeyPath = ("stores", draft.store, "pos")
    orders: KeyPath = ("stores", draft.store, "orders")
    answers = {path: getattr(draft, answer) for answer, path in _keys(draft.store).items()}
    wanted: dict[KeyPath, Any] = {path: value for path, value in answers.items() if value}
    if not draft.hours_file:
        wanted["stores", draft.store, "hours_file"] = None  # they are managed at the service
    if draft.pos and not _table(document, *pos):
        # Nobody has seen yet what this till's export comes to.
        wanted["stores", draft.store, "menu", "approve_first"] = True
    for path, given, own in ((pos, draft.pos, _OWN_POS), (orders, draft.orders, _OWN_ORDERS)):
        if given:
            there = _table(document, *path)
            wanted |= {(*path, key): None for key in there if key not in own and key not in given}
            wanted |= {(*path, key): value for key, value in given.items()}
    return {path: value for path, value in wanted.items() if value_at(document, path) != value}


def digest_of(*values: object) -> str:
    """Return what differs wherever one of the values does."""
    text = "\0".join(each if isinstance(each, str) else repr(each) for each in values)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _table(document: Mapping[str, Any], *path: str | int) -> Mapping[str, Any]:
    found = value_at(document, path)
    return found if isinstance(found, Mapping) else {}


def _adapter_part(table: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """Return an adapter and its options, of a table that also holds settings of the bridge's."""
    if "adapter" not in table:
        return {}
    return {key: value for key, value in table.items() if key == "adapter" or key not in own}


_Part = Mapping[str, Any]

_STARTING_S = 15


def findings_of(
    overview: _Part, store: str, *, base_url: str, currency: str = "", delivered: bool = False
) -> dict[str, Finding]:
    """Return a finding for each step, for the store of that name.

    `overview` is the status document with its chain (docs/page.md); `delivered`: a signed delivery
    has arrived, of whatever kind.
    """
    part = overview["stores"][store]
    links = {link["key"]: link for link in overview["chain"][store]}
    return {
        "service": _service(links["service"], base_url),
        "sign_in": _sign_in(part["service"], store),
        "store": _store(part["service"], store, currency, links["service"]["codes"]),
        "adapter": _adapter(part),
        "address": _address(links["address"], part["service"]),
        "order": _order(part["orders"], delivered=delivered),
    }


def starting(overview: _Part, store: str) -> bool:
    """Whether the bridge has just started, and has yet to reach the service for the store."""
    service, uptime_s = overview["stores"][store]["service"], overview["bridge"]["uptime_s"]
    links = {link["key"]: link for link in overview["chain"][store]}
    is_there = links["service"]["at"] is not None and service["integrated"]
    has_access = _NO_ACCESS.isdisjoint(links["service"]["codes"])
    return not is_there and has_access and uptime_s is not None and uptime_s < _STARTING_S


# Problems with which the bridge asks the service nothing for the store: signing in comes first.
_NO_ACCESS = frozenset({"consent.missing", "consent.revoked", "consent.expired"})


def _service(link: _Part, base_url: str) -> Finding:
    if link["at"] is not None:
        return done(_("The service answers at {url}."), url=base_url)
    if not _NO_ACCESS.isdisjoint(link["codes"]) and "service.unreachable" not in link["codes"]:
        return done(_("The address is {url}."), url=base_url)
    return not_done(
        _("The service has not answered at {url} yet."),
        _("Check that this machine is on the internet and that the address is right."),
        url=base_url,
    )


def _sign_in(service: _Part, store: str) -> Finding:
    left = service["consent_days_left"]
    if left and service["consent"] in {"ok", "ending"}:
        whole = max(1, round(left))
        days = ngettext("{n} day", "{n} days", whole).format(n=whole)
        return done(_("Connected. Sign in again within {days}."), days=days)
    return not_done(
        _("This bridge has no access to {store} at the ordering service."),
        _("Sign in there again."),
        store=store,
    )


def _store(service: _Part, store: str, currency: str, codes: Sequence[str]) -> Finding:
    if "integration.secret_missing" in codes:
        return not_done(
            _("Another bridge connected {store}, so this one refuses its orders."),
            _("On the overview, choose “Get a new webhook secret”."),
            store=service["store_name"] or store,
        )
    if service["integrated"]:
        name = service["store_name"] or service["store_id"] or "?"
        if currency:
            return done(_("{name} is connected, in {currency}."), name=name, currency=currency)
        return done(_("{name} is connected."), name=name)
    text = _("{store} is not connected to the ordering service.")
    return not_done(text, _("Connect it."), store=store)


def _adapter(part: _Part) -> Finding:
    adapter, items = part["pos"]["adapter"], part["menu"]["acknowledged_items"]
    if part["pos"]["online"] is False:
        return not_done(
            _("The till does not answer: {detail}"),
            _("Check that it is on, then test its settings below."),
            detail=part["pos"]["detail"] or adapter,
        )
    if items:
        on_sale = ngettext("{n} item", "{n} items", items).format(n=items)
        return done(_("The storefront has {items}."), items=on_sale)
    if part["menu"]["held"]:
        return not_done(
            _("Your menu is ready, and guests do not see it yet."),
            _("Review it and publish it."),
        )
    return not_done(
        _("The storefront has no menu yet."),
        _("It is being sent. The Menu page shows the progress."),
    )


def _address(link: _Part, service: _Part) -> Finding:
    if link["state"] == "down":
        return not_done(
            _("The public address does not lead to this bridge."),
            _("Test it below; the overview says what is wrong."),
        )
    if link["at"] is not None and service["webhook_url"]:
        return done(_("Orders reach this bridge at {url}."), url=service["webhook_url"])
    return not_done(_("Nothing has arrived through the public address yet."), _("Test it below."))


def _order(orders: _Part, *, delivered: bool) -> Finding:
    if count := sum(orders["by_state"].values()):
        return done(ngettext("{n} order has arrived.", "{n} orders have arrived.", count), n=count)
    text = _("No order has arrived yet.")
    if delivered:
        text = _("The ordering service reaches this bridge; no order has arrived yet.")
    return not_done(text, _("Place a test order."))
