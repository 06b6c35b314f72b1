"""What a bridge says of itself to whoever looks after many: `NAME.json` and its signature."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from tillbridge.fleet.minisign import NotSigned, PublicKey, SigningKey
from tillbridge.model.instant import from_iso, to_iso

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Report:
    """A bridge at a moment (ms): `status` is the document of `tillbridge status --json`."""

    bridge: str
    at_ms: int
    status: Mapping[str, Any]

    @property
    def glance(self) -> "Glance":
        """Return what a list of bridges shows of the status. Raises NotSigned where it is none."""
        try:
            return Glance.model_validate(self.status)
        except ValidationError as failure:
            place = ".".join(map(str, failure.errors(include_url=False)[0]["loc"]))
            msg = f"its status is not of the form that a bridge writes ({place})"
            raise NotSigned(msg) from None


class _Verdict(BaseModel):
    level: str = ""
    text: str = ""


class _Problem(BaseModel):
    code: str
    store: str = ""


class _Bridge(BaseModel):
    version: str = ""


class Glance(BaseModel):
    """The part of a status that a list of bridges shows."""

    verdict: _Verdict = Field(default_factory=_Verdict)
    problems: list[_Problem] = Field(default_factory=list)
    bridge: _Bridge = Field(default_factory=_Bridge)


@dataclass(frozen=True, slots=True)
class SignedReport:
    """The two files."""

    content: bytes
    signature: bytes

    @classmethod
    def of(cls, report: Report, key: SigningKey) -> "SignedReport":
        """Sign it."""
        told = {
            "format": FORMAT,
            "bridge": report.bridge,
            "at": to_iso(report.at_ms),
            "status": report.status,
        }
        content = json.dumps(told, ensure_ascii=False, indent=1).encode()
        comment = f"timestamp:{report.at_ms // 1000}\tfile:{report.bridge}.json"
        return cls(content, key.sign(content, comment).encode())

    def read(self, key: PublicKey) -> Report:
        """Return what it says. Raises NotSigned, also for what is signed and no report."""
        try:
            key.check(self.content, self.signature.decode())
            told = json.loads(self.content)
            report = Report(str(told["bridge"]), from_iso(str(told["at"])), dict(told["status"]))
            known = told["format"]
        except NotSigned:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as slip:
            msg = f"it is no report of a bridge: {slip}"
            raise NotSigned(msg) from slip
        if known != FORMAT:
            msg = f"its format is {known}, and this program reads {FORMAT}"
            raise NotSigned(msg)
        return report
