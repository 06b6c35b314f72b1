"""The part of a `PretendControl` for setting up."""

from collections.abc import Callable
from typing import Any

from tests.support.hostile import PLANT
from tillbridge.onboarding.steps import Finding, next_step, steps_of

Answer = dict[str, Any]


class PretendSetup:
    """Remembers what it was asked; `shown` is what the page gets."""

    def __init__(self, told: Callable[..., Answer]) -> None:
        self._told = told
        self.shown = half_done("http://127.0.0.1:9000/v2")

    async def show(self) -> Answer:
        return self.shown


def half_done(text: str = PLANT) -> Answer:
    """Return a set-up that has come to its third step; `text` is from outside."""
    steps = steps_of(
        {
            "service": Finding(done=True, text=text),
            "sign_in": Finding(done=True, text=text),
            "store": Finding(done=False, text=text, fix=text),
        }
    )
    return {
        "file": text,
        "store": text,
        "others": [text],
        "steps": [step.to_json() for step in steps],
        "next": next_step(steps),
    }
