"""A small experiment on a small domain, with the real model."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fewparse.experiment.grid import ExperimentTable
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.model import LanguageModel
from support.lamp_domain import make_lamps

OpenModel = Callable[[str], Any]


@pytest.fixture(scope="session")
def lamp_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_lamps(tmp_path_factory.mktemp("domains") / "lamps").folder


@pytest.fixture
def open_model(model: EmbeddedModel) -> OpenModel:
    """Open the shared model, which stays open."""

    @contextmanager
    def open_shared(name: str) -> Iterator[LanguageModel]:
        yield model

    return open_shared


def lamp_table(folder: Path, **axes: Any) -> ExperimentTable:
    """Return an experiment on the lamps."""
    top = {name: axes.pop(name) for name in ("name", "split", "limit", "trace") if name in axes}
    return ExperimentTable.model_validate({**top, "grid": [{"domain": str(folder), **axes}]})
