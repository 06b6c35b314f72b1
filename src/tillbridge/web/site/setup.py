"""Set-up: from nothing to the first order, each step tested before the next opens.

The form of a step is sent to an action that tests it; what was tested is stored, and at the end one
action shows what changes in bridge.toml and writes it. Everything works without a script.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tillbridge.core.actor import Role
from tillbridge.core.errors import ConfigError
from tillbridge.core.formats import currency_name
from tillbridge.core.i18n import _
from tillbridge.model.money import currencies
from tillbridge.orders.sentences import is_ticket_number
from tillbridge.setup.draft import STEPS
from tillbridge.stores.consent import FIELDS
from tillbridge.web.site.book import (
    Action,
    Do,
    Done,
    Filled,
    Page,
    Question,
    Visit,
    link,
    performs,
    subject,
)
from tillbridge.web.site.orders import worded
from tillbridge.web.site.settings import what_next

_CHANGEABLE = ("service", "sign_in", "store", "adapter", "address")
# The step that an action belongs to.
_STEP_OF: Mapping[str, str] = {
    "/setup/service": "service",
    "/setup/sign-in": "sign_in",
    "/setup/allow": "sign_in",
    "/setup/sign-up": "sign_in",
    "/setup/store": "store",
    "/setup/sample-till": "adapter",
    "/setup/till": "adapter",
    "/setup/orders": "adapter",
    "/setup/address": "address",
    "/setup/write": "save",
    "/setup/order": "order",
}


async def _fill(visit: Visit) -> Filled:
    adapter = visit.query.get("adapter", "")
    answer = await visit.perform("setup.show", adapter=adapter)
    arrived: list[Mapping[str, Any]] = []  # the latest orders of the store, the newest first
    if answer["running"]:
        orders = (await visit.perform("orders.list", store=answer["store"]))["orders"][:3]
        arrived = [{**order, **worded(order)} for order in orders]
    steps = await what_next(visit) if answer["running"] and not answer["next"] else ()
    return {
        "setup": answer,
        "titles": STEPS,
        "changeable": _CHANGEABLE,
        "currencies": [(each.code, currency_name(each.code, each.name)) for each in currencies()],
        "step_of": _STEP_OF,
        # Choosing an adapter loads the page again: its form stays in sight.
        "opened": "adapter" if adapter else visit.one_of("open", _CHANGEABLE),
        "opened_option": visit.query.get("option", ""),
        "signup": [(each.name, each.question, each.required) for each in FIELDS],
        "arrived": arrived,
        "is_ticket_number": is_ticket_number,
        "steps": steps,
    }


async def _service(visit: Visit) -> Done:
    practice = visit.form.get("practice", "")
    url = practice or visit.form.get("base_url", "")
    answer = await visit.perform("setup.service", base_url=url, practice=bool(practice))
    offered = answer.get("offered", "")
    return replace(Done.of(answer), typed={"base_url": offered or url})


async def _sign_up(visit: Visit) -> Done:
    form = {each.name: visit.form.get(each.name, "") for each in FIELDS}
    return Done.of(await visit.perform("setup.sign_up", form=form))


def _trying(operation: str) -> Do:
    """Return what tries an adapter with the options of its form."""
    prefix = "option-"

    async def do(visit: Visit) -> Done:
        options = {
            name.removeprefix(prefix): text
            for name, text in visit.form.items()
            if name.startswith(prefix)
        }
        adapter = visit.form.get("adapter", "")
        try:
            return Done.of(await visit.perform(operation, adapter=adapter, form=options))
        except ConfigError as failure:  # the form of the adapter that was chosen stays in sight
            to = link("/setup", adapter=adapter if operation == "setup.till" else "") + _NOW
            return Done.refused(failure, to)

    return do


_NOW = "#now"  # the part of the page where the step to take now is
SUBJECT = subject(
    Page("/setup", _("Set-up"), "setup.html", _fill, role=Role.TECHNICIAN),
    performs("/setup/service", _("Test it"), "setup.service", do=_service),
    performs("/setup/sign-in", _("Test it"), "setup.sign_in"),
    performs("/setup/allow", _("Use this e-mail"), "setup.allow"),
    performs("/setup/sign-up", _("Sign up"), "setup.sign_up", do=_sign_up),
    performs("/setup/store", _("This is my store"), "setup.choose"),
    performs("/setup/sample-till", _("Use a sample till"), "setup.sample_till"),
    performs("/setup/till", _("Read the menu now"), "setup.till", do=_trying("setup.till")),
    performs("/setup/orders", _("Send orders there"), "setup.orders", do=_trying("setup.orders")),
    performs("/setup/address", _("Test it"), "setup.address"),
    performs("/setup/write", _("Save and restart"), "setup.write"),
    performs(
        "/setup/restart",
        _("Restart now"),
        "setup.restart",
        back="/",
        ask=Question(
            _("The bridge restarts with bridge.toml as it is now."),
            _("Restart"),
            points=(_("Orders that arrive meanwhile wait some seconds."),),
        ),
    ),
    performs("/setup/forget", _("Discard changes"), "setup.forget"),
    performs("/setup/order", _("Place a test order"), "setup.order"),
    home="/setup",
)
SUBJECT = tuple(
    replace(each, back=f"/setup{_NOW}")
    if isinstance(each, Action) and each.back == "/setup"
    else each
    for each in SUBJECT
)
