"""Shared by the tests of the server: the model of the command line, and one server for each module."""

from collections.abc import Iterator

import pytest

from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.load import ModelSettings
from support.cli_runner import open_shared
from support.serving import Served, running


@pytest.fixture(scope="session")
def embedded() -> EmbeddedModel:
    """The embedded model, which the commands of the tests use too."""
    return open_shared("", ModelSettings())


@pytest.fixture(scope="module")
def served(embedded: EmbeddedModel) -> Iterator[Served]:
    """A server with the bundled calendar and its adapter."""
    with running(embedded, "calendar") as started:
        yield started
