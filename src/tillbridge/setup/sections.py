"""The settings that a restaurant changes on the page, as `sections.toml` declares them.

What kind of value a field takes, its bounds and its default are those of the models in `config/`;
here is only how people read it. `{store}` in a path stands for the store that is edited.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Setting(_Declared):
    """A setting on the page; its texts are marked, not translated.

    `path` is its key in bridge.toml, `unit` is behind the field, `labels` say what values of a
    list mean; `names` do so where that is a proper name, which is the same in every language.
    """

    path: str
    label: str
    help: str = ""
    unit: str = ""
    labels: Mapping[str, str] = {}
    names: Mapping[str, str] = {}

    @property
    def choices(self) -> Mapping[str, str]:
        """What each value of a list means."""
        return {**self.labels, **self.names}


class Group(_Declared):
    """Fields below one heading. `optional` is a table that goes when all its fields are empty."""

    title: str
    fields: tuple[Setting, ...]
    optional: str = ""


class SettingsSection(_Declared):
    """A page of settings; one of `each_store` is there for every store."""

    name: str
    title: str
    intro: str
    icon: str
    groups: tuple[Group, ...] = ()
    each_store: bool = False

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Its fields, of all groups."""
        return tuple(each for group in self.groups for each in group.fields)


SECTIONS_FILE = Path(__file__).with_name("sections.toml")
BY_NAME: Mapping[str, SettingsSection] = {
    name: SettingsSection(name=name, **declared)
    for name, declared in tomllib.loads(SECTIONS_FILE.read_text("utf-8")).items()
}
SECTIONS = tuple(BY_NAME.values())
