"""A small model that is tuned in seconds, and a small domain for it."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fewparse.domains.domain import Domain
from fewparse.lm.embedded import EmbeddedModel
from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import TrainingSet
from support.extras import need_torch
from support.switch_domain import make_switches
from support.tiny_model import write_tiny_model

if TYPE_CHECKING:
    from fewparse.tune.lora import LoraModel

NEED_TORCH = ("test_checkpoint", "test_lora", "test_trainer", "test_tuning")


class TorchModule(pytest.Module):
    """A test module that cannot be imported without torch."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        need_torch()
        return super().collect()


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return TorchModule.from_parent(parent, path=module_path) if module_path.stem in NEED_TORCH else None


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small random model."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="session")
def tiny(tiny_path: Path) -> Iterator[EmbeddedModel]:
    """The small model in llama.cpp."""
    opened = EmbeddedModel(tiny_path)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def shared_lora_model(tiny_path: Path) -> "LoraModel":
    """The small model in torch."""
    from fewparse.tune.lora import LoraModel

    return LoraModel(tiny_path, TuneConfig(rank=4))


@pytest.fixture
def lora_model(shared_lora_model: "LoraModel") -> "LoraModel":
    """The small model in torch with initial LoRA weights."""
    shared_lora_model.reset(0)
    return shared_lora_model


@pytest.fixture(scope="session")
def switches(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    """A domain with a dozen examples."""
    return make_switches(tmp_path_factory.mktemp("domains") / "switches")


@pytest.fixture(scope="session")
def training_set(tiny: EmbeddedModel, switches: Domain) -> TrainingSet:
    """The examples of the domain, tokenized by the small model, without augmentation."""
    return TrainingSet(tiny, switches.template("tuned"), switches.examples, "program")
