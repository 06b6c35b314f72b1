"""The table [communities.NAME]: a hub that a store is a member of."""

from pydantic import Field

from tillbridge.config.values import Seconds, Section


class CommunitySettings(Section):
    """The table [communities.NAME]."""

    community_id: str = Field(min_length=1, description="The community's id at the service.")
    stores: list[str] = Field(
        default_factory=list,
        description="Your member stores, by their names in this file; [] means all of them.",
    )
    events: list[str] = Field(
        default_factory=list,
        description="The events that are subscribed to; [] means all of them.",
    )
    webhook_name: str = Field(
        "tillbridge",
        min_length=1,
        max_length=200,
        description="What the webhook subscription is called at the service.",
    )
    push_hours: bool = Field(
        default=True,
        description="Whether the stores' opening hours (hours_file) are pushed to the community.",
    )
    sync_s: Seconds = Field(
        60, description="How often the catalogue is asked for what has changed in it."
    )
    full_sync_s: Seconds = Field(
        86_400, description="How often the catalogue is read whole all the same."
    )
    check_s: Seconds = Field(
        600, description="How often the webhook subscription and its deliveries are looked at."
    )
    child_within_s: Seconds = Field(
        120,
        description=(
            "A store's part of a community order that has not arrived by then is a problem."
        ),
    )
