"""Two sizes of a test: a small one by default, and a long one that `make campaign` runs."""

import pytest
from hypothesis import settings

PROFILE = "campaign"
"""The Hypothesis profile of a campaign, which is random; the default profile is deterministic."""
FACTOR = 20


def is_running() -> bool:
    """Whether the tests are run with the profile of a campaign."""
    return settings.get_current_profile_name() == PROFILE


def examples(count: int) -> settings:
    """The number of random examples of a Hypothesis test; a campaign has more."""
    return settings(max_examples=count * (FACTOR if is_running() else 1))


def sizes(name: str, default: int, campaign: int) -> pytest.MarkDecorator:
    """Parametrise a test by its size: one for every run, and another for campaigns."""
    return pytest.mark.parametrize(
        name,
        [
            pytest.param(default, id=str(default)),
            pytest.param(campaign, id=str(campaign), marks=pytest.mark.campaign),
        ],
    )
