"""A small model that learns in seconds, and a small domain for it to learn."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fewparse.domains.domain import Domain
from fewparse.lm.embedded import EmbeddedModel
from fewparse.tune.dataset import Lessons
from support.extras import need_torch
from support.switch_domain import make_switches
from support.tiny_model import write_tiny_model

if TYPE_CHECKING:
    from fewparse.tune.lora import Pupil

LEARNING = ("test_bookmark", "test_course", "test_pupil", "test_tuning")


class Learning(pytest.Module):
    """Tests that cannot even be imported without the extra."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        need_torch()
        return super().collect()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return Learning.from_parent(parent, path=module_path) if module_path.stem in LEARNING else None


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small random model."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="session")
def tiny(tiny_path: Path) -> Iterator[EmbeddedModel]:
    """That model in llama.cpp."""
    opened = EmbeddedModel(tiny_path)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def shared_pupil(tiny_path: Path) -> "Pupil":
    """That model in torch."""
    from fewparse.tune.lora import Pupil

    return Pupil(tiny_path, rank=4, scale=2.0)


@pytest.fixture
def pupil(shared_pupil: "Pupil") -> "Pupil":
    """That model in torch, before it has learned anything."""
    shared_pupil.begin(0)
    return shared_pupil


@pytest.fixture(scope="session")
def switches(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    """A domain with a dozen examples."""
    return make_switches(tmp_path_factory.mktemp("domains") / "switches")


@pytest.fixture(scope="session")
def taught(tiny: EmbeddedModel, switches: Domain) -> Lessons:
    """The examples of that domain, as lessons for that model."""
    return Lessons(tiny, switches.template("tuned"), switches.examples, "program")
