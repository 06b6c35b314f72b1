"""The steps of setting up, and which of them may be taken now. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["done", "open", "shut"]

# In this order; each is tested before the next one opens.
STEPS = ("service", "sign_in", "store", "adapter", "address", "order")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one step: whether it is done, in words, and what to do where it is not."""

    done: bool
    text: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A step as it is shown. Only one that is `open` or `done` can be taken (again)."""

    name: str
    state: State
    text: str = ""
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it for the page."""
        return {"name": self.name, "state": self.state, "text": self.text, "fix": self.fix}


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
