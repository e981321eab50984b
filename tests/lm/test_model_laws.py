"""All language models satisfy the laws of `fewparse.testing`. To test another one, add it to `subject`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.http.completions import CompletionsModel
from fewparse.lm.local import LocalModel
from fewparse.lm.model import Completion, Guide, LanguageModel, NextTokens, Prefix, Sampling
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.testing import MODEL_LAWS
from fewparse.vocabulary import Mask
from support.adapters import write_adapter
from support.remote_models import toy_completions
from support.server_behaviours import COMPLIANT, LLAMA_CPP
from support.toy_model import ToyModel


@pytest.fixture(scope="module")
def toy_served() -> Iterator[CompletionsModel]:
    """A server that behaves like llama.cpp, without grammars: it reports its vocabulary and hides the stop."""
    with toy_completions(replace(LLAMA_CPP, grammar=None)) as opened:
        yield opened


@pytest.fixture(scope="module")
def toy_served_as_text() -> Iterator[CompletionsModel]:
    """A server that behaves like OpenAI: neither ids nor a vocabulary, prefixes are sent as text."""
    with toy_completions(COMPLIANT) as opened:
        yield opened


@pytest.fixture(scope="module")
def adapted_model(model: EmbeddedModel, tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    """The embedded model with an adapter, which shares its cache with the model without one."""
    path = write_adapter(tmp_path_factory.mktemp("adapter") / "some.gguf")
    return model.with_adapter(read_adapter(path))


@pytest.fixture(
    params=[
        *("model", "gemma", "adapted_model", "transformers_model", "toy"),
        *("served_model", "toy_served", "toy_served_as_text"),
    ]
)
def subject(request: pytest.FixtureRequest) -> LanguageModel:
    opened: LanguageModel = ToyModel() if request.param == "toy" else request.getfixturevalue(request.param)
    return opened


@pytest.mark.parametrize("law", MODEL_LAWS, ids=lambda law: law.__name__)
def test_law(subject: LanguageModel, law: Callable[[LanguageModel], None]) -> None:
    law(subject)


class Defective(ToyModel):
    """A model with the defect of this name."""

    def __init__(self, defect: str) -> None:
        super().__init__()
        self.defect = defect
        self.queries = 0

    def logprobs(self, context: Sequence[int]) -> list[float]:
        shift = 0.1 if self.defect == "unnormalised" else 0.0
        return [logprob + shift for logprob in super().logprobs(context)]

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        masks = None if self.defect == "ignores masks" else allowed
        results = super().next_tokens(prompt, prefixes, k, stop, usage, masks)
        if self.defect == "unsorted":
            return [result._replace(best=result.best[::-1]) for result in results]
        return results

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        self.queries += 1
        seeds = {"ignores seeds": 0, "unrepeatable": self.queries}
        sampling = replace(sampling, seed=seeds.get(self.defect, sampling.seed))
        if self.defect == "ignores guides":
            guides = ()
        groups = super().sample(prompt, prefixes, sampling, usage, guides)
        usage.requests += self.defect == "counts wrongly"
        if self.defect == "no positions":
            return [[completion._replace(positions=()) for completion in group] for group in groups]
        return groups


@pytest.mark.parametrize(
    ("defect", "law"),
    [
        ("unnormalised", "probabilities_sum_to_one"),
        ("unsorted", "next_tokens_are_sorted"),
        ("ignores masks", "masks_are_exact"),
        ("ignores seeds", "another_seed_gives_other_samples"),
        ("unrepeatable", "samples_depend_on_the_seed_only"),
        ("ignores guides", "a_guide_stops_a_sample"),
        ("no positions", "samples_report_every_position"),
        ("counts wrongly", "requests_are_counted"),
    ],
)
def test_a_defective_model_violates_the_law(defect: str, law: str) -> None:
    (violated,) = (each for each in MODEL_LAWS if each.__name__ == law)
    violated(Defective("none"))
    with pytest.raises(AssertionError, match=r"\w+ \w+"):
        violated(Defective(defect))


@given(text=st.text())
def test_tokens_concatenate_to_the_text(model: EmbeddedModel, text: str) -> None:
    tokens = model.tokenize(text)
    expected = bytes(b for b in text.encode() if b not in model.vocabulary.missing_bytes)
    assert b"".join(token.bytes for token in tokens) == expected
    assert all(token.bytes for token in tokens)


def test_only_bytes_that_no_program_needs_have_no_token(model: EmbeddedModel) -> None:
    assert not model.vocabulary.missing_bytes & set("\t\n\r !~äß中".encode() + bytes(range(0x20, 0x7F)))
