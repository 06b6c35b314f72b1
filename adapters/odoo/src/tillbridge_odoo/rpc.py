"""JSON-RPC with Odoo over HTTP: one question, one answer, or the fact that there was none.

Odoo answers failures with status 200 and an `error` in the body.
"""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

from tillbridge.adapter.http_client import HttpClient, NoAnswer
from tillbridge.adapter.texts import _

__all__ = ["Asks", "Fault", "HttpRpc", "NoAnswer", "answer_in", "no_odoo"]


class Fault(Exception):
    """Odoo refused; `kind` is the name of its exception, `text` what it says."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class Asks(Protocol):
    """A way to ask Odoo."""

    def ask(self, service: str, method: str, args: Sequence[object], *, changes: bool) -> Any:  # noqa: ANN401 -- any JSON value
        """Return the answer. `changes` says that asking twice is not the same as asking once.

        Raises NoAnswer, Fault.
        """
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class HttpRpc:
    """Asks over HTTP, from any thread; connections are kept for a while."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._http = HttpClient(url, name="Odoo", connect_s=timeout_s, answer_s=timeout_s)

    def ask(self, service: str, method: str, args: Sequence[object], *, changes: bool) -> Any:  # noqa: ANN401 -- any JSON value
        """Return the answer. Raises NoAnswer, Fault."""
        params = {"service": service, "method": method, "args": list(args)}
        body = json.dumps({"jsonrpc": "2.0", "method": "call", "id": 1, "params": params})
        headers = {"Content-Type": "application/json"}
        answer = self._http.exchange(
            "POST", "/jsonrpc", body=body.encode(), headers=headers, changes=changes
        )
        if answer.status != 200:
            raise NoAnswer(_status_text(answer.status), sent=True)
        return answer_in(answer.content)

    def close(self) -> None:
        """Close all connections; one that is in use is closed when its answer is there."""
        self._http.close()


def answer_in(content: bytes) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the result in the body of an answer, numbers exact. Raises NoAnswer, Fault."""
    try:
        answer = json.loads(content, parse_float=Decimal)
    except (ValueError, RecursionError) as failure:
        raise no_odoo() from failure
    if not isinstance(answer, Mapping) or not ("result" in answer or "error" in answer):
        raise no_odoo()
    if "error" in answer:
        raise _fault(answer["error"])
    return answer["result"]


def no_odoo() -> NoAnswer:
    """Return the failure of an answer that no Odoo gives."""
    return NoAnswer(_("What answers there is no Odoo."), sent=True)


def _fault(error: object) -> Fault:
    fault = error if isinstance(error, Mapping) else {}
    data = fault.get("data")
    data = data if isinstance(data, Mapping) else {}
    text = " ".join(str(data.get("message") or fault.get("message") or "").split())
    return Fault(str(data.get("name") or ""), text or _("no reason given"))


def _status_text(status: int) -> str:
    if status in {301, 302, 307, 308}:
        return _("The server sends elsewhere (status {status}): correct the option url.").format(
            status=status
        )
    if status == 404:
        return _("There is no Odoo at this address (status 404): correct the option url.")
    return _("The server answers with status {status}.").format(status=status)
