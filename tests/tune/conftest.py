"""A small model that learns in seconds, and a small domain for it to learn."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fewparse.domains.domain import Domain
from fewparse.lm.embedded import EmbeddedModel
from tune.switches import make_switches

if TYPE_CHECKING:
    from fewparse.tune.lessons import Lessons
    from fewparse.tune.pupil import Pupil


def pytest_pycollect_makemodule() -> None:
    """Skip what cannot even be imported without the extra."""
    for needed in ("torch", "transformers", "gguf", "accelerate"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: it belongs to the extra `tune`")


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small random model."""
    from tune.tiny_model import write_tiny_model

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
    from fewparse.tune.pupil import Pupil

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
def taught(tiny: EmbeddedModel, switches: Domain) -> "Lessons":
    """The examples of that domain, as lessons for that model."""
    from fewparse.tune.lessons import Lessons

    return Lessons(tiny, switches.template("tuned"), switches.examples, "program")
