"""Vocabularies for constraints: the embedded model's own, and single bytes."""

import pytest

from fewparse.lm.embedded import EmbeddedModel
from fewparse.vocabulary import BYTES, Vocabulary


@pytest.fixture(scope="session")
def model_vocabulary(model: EmbeddedModel) -> Vocabulary:
    """The 49,152 tokens of the embedded model."""
    return model.vocabulary


@pytest.fixture(scope="session", params=["model tokens", "single bytes"])
def vocabulary(request: pytest.FixtureRequest, model_vocabulary: Vocabulary) -> Vocabulary:
    """Each vocabulary in turn."""
    return model_vocabulary if request.param == "model tokens" else BYTES
