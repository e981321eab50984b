"""What all tests share: the real embedded model, loaded once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fewparse.data import overnight, smcalflow
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


@pytest.fixture(scope="session")
def overnight_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with all of Overnight, imported from the copy beside the project."""
    source = Path(__file__).parents[2] / "shared" / "data" / "overnight"
    if not source.is_dir():
        pytest.skip("the Overnight dataset is not beside this project")
    folder = tmp_path_factory.mktemp("data")
    overnight.import_from(source, folder)
    return folder


@pytest.fixture(scope="session")
def smcalflow_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with SMCalFlow, imported from the copy beside the project."""
    source = Path(__file__).parents[2] / "shared" / "data" / "smcalflow"
    if not source.is_dir():
        pytest.skip("the SMCalFlow dataset is not beside this project")
    folder = tmp_path_factory.mktemp("data")
    smcalflow.import_from(source, folder)
    return folder
