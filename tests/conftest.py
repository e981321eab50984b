"""What all tests share: the real embedded model, loaded once."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.weights import pull

settings.register_profile(
    "fewparse",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fewparse")


@pytest.fixture(scope="session")
def model() -> Iterator[EmbeddedModel]:
    """The real embedded model. Its cache is shared by all tests, which must not notice."""
    opened = EmbeddedModel(pull())
    yield opened
    opened.close()
