"""Shared by the tests of the server: models, a domain without an adapter, and one server for each module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.load import ModelSettings
from support.cli_runner import open_shared
from support.serving import GatedModel, Served, running
from support.switch_domain import make_switches


@pytest.fixture(scope="session")
def embedded() -> EmbeddedModel:
    """The embedded model, which the commands of the tests use too."""
    return open_shared("", ModelSettings())


@pytest.fixture(scope="module")
def served(embedded: EmbeddedModel) -> Iterator[Served]:
    """A server with the bundled calendar and its adapter."""
    with running(embedded, "calendar") as started:
        yield started


@pytest.fixture(scope="module")
def gated(embedded: EmbeddedModel) -> GatedModel:
    """The embedded model behind a gate."""
    return GatedModel(embedded)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A domain folder of switches."""
    folder = tmp_path_factory.mktemp("domains") / "switches"
    make_switches(folder)
    return folder
