"""Asking an emulated Odoo without a network: for case folders, `url = "file:odoo.json"`."""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from tillbridge_odoo.emulated.faults import OdooFault
from tillbridge_odoo.emulated.till import DATABASE, KEY, LOGIN, EmulatedOdoo
from tillbridge_odoo.rpc import Fault

_AS_ME = (DATABASE, LOGIN, KEY)


class RecordedRpc:
    """Answers from the records in a file; whoever asks is let in."""

    def __init__(self, path: Path, currency: str) -> None:
        recorded = json.loads(path.read_text("utf-8"))
        self._odoo = EmulatedOdoo(int(recorded.get("version", 17)))
        self._odoo.seed(currency)
        self._odoo.load(path)

    def ask(self, service: str, method: str, args: Sequence[object], *, changes: bool) -> Any:  # noqa: ANN401 -- any JSON value
        """Return the answer. Raises Fault."""
        if method == "authenticate":
            args = (*_AS_ME, {})
        elif method == "execute_kw":
            args = (DATABASE, args[1], KEY, *args[3:])
        try:
            answer = self._odoo.answer(service, method, json.loads(json.dumps(args)))
        except OdooFault as fault:
            raise Fault(fault.kind, fault.text) from fault
        return json.loads(json.dumps(answer), parse_float=Decimal)

    def close(self) -> None:
        """Nothing is held."""
