"""All language models satisfy the laws of `fewparse.testing`. To test another one, add it to `subject`."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.http.completions import CompletionsModel
from fewparse.lm.local import LocalModel
from fewparse.lm.model import LanguageModel
from fewparse.testing import MODEL_LAWS
from support.adapters import write_adapter
from support.server_behaviours import HONEST, LLAMA_CPP
from support.toy_model import ToyModel
from support.toy_remote import toy_completions


@pytest.fixture(scope="module")
def toy_served() -> Iterator[CompletionsModel]:
    """A server that behaves like llama.cpp, without grammars: it reports its vocabulary and hides the stop."""
    with toy_completions(replace(LLAMA_CPP, grammar=None)) as opened:
        yield opened


@pytest.fixture(scope="module")
def toy_served_as_text() -> Iterator[CompletionsModel]:
    """A server that behaves like OpenAI: neither ids nor a vocabulary, prefixes are sent as text."""
    with toy_completions(HONEST) as opened:
        yield opened


@pytest.fixture(scope="module")
def adapted_model(model: EmbeddedModel, tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    """The embedded model with an adapter, which shares its cache with the model without one."""
    path = write_adapter(tmp_path_factory.mktemp("adapter") / "some.gguf")
    return model.with_adapter(read_adapter(path))


@pytest.fixture(
    params=[
        *("model", "adapted_model", "transformers_model", "toy"),
        *("served_model", "toy_served", "toy_served_as_text"),
    ]
)
def subject(request: pytest.FixtureRequest) -> LanguageModel:
    opened: LanguageModel = ToyModel() if request.param == "toy" else request.getfixturevalue(request.param)
    return opened


@pytest.mark.parametrize("law", MODEL_LAWS, ids=lambda law: law.__name__)
def test_law(subject: LanguageModel, law: Callable[[LanguageModel], None]) -> None:
    law(subject)


def test_all_laws_are_documented_and_distinct() -> None:
    assert all(law.__doc__ for law in MODEL_LAWS)
    assert len({law.__name__ for law in MODEL_LAWS}) == len(MODEL_LAWS)


@given(text=st.text())
def test_tokens_concatenate_to_the_text(model: EmbeddedModel, text: str) -> None:
    tokens = model.tokenize(text)
    expected = bytes(b for b in text.encode() if b not in model.vocabulary.missing_bytes)
    assert b"".join(token.bytes for token in tokens) == expected
    assert all(token.bytes for token in tokens)


def test_only_bytes_that_no_program_needs_have_no_token(model: EmbeddedModel) -> None:
    assert not model.vocabulary.missing_bytes & set("\t\n\r !~äß中".encode() + bytes(range(0x20, 0x7F)))
