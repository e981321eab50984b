"""A small random model: what it gets right is by the reranking."""

from collections.abc import Iterator

import pytest

from fewparse.lm.embedded import EmbeddedModel
from support.tiny_model import write_tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedModel]:
    """The small model in llama.cpp."""
    opened = EmbeddedModel(write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf"))
    yield opened
    opened.close()
