"""The evaluators of Hugging Face models: token trees and whole sequences give the logits of the model itself."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fewparse.errors import ContextOverflow
from fewparse.lm import evaluator, token_tree
from fewparse.lm.evaluator import Evaluator, Logits, Span, TokenIds, WholeSequences
from fewparse.lm.token_tree import TokenTree
from fewparse.lm.usage import Usage
from support import tiny_checkpoints as tiny

torch = pytest.importorskip("torch", reason="torch is not installed: it belongs to the extra `transformers`")
hf = pytest.importorskip("transformers", reason="transformers is not installed: it is an extra")

TOLERANCE = 1e-3
SMALL_LIMITS = {
    "MAX_TOKENS_PER_PASS": 3,
    "MAX_TREE_TOKENS": 7,
    "MAX_STORED_LOGITS": 2,
    "MAX_ROWS_PER_BATCH": 4,
}
any_path = st.lists(st.integers(3, 5), max_size=6).map(tuple)
any_prompt = st.lists(st.integers(3, 5), min_size=1, max_size=6).map(tuple)

KINDS: list[tuple[str, Callable[..., Evaluator]]] = [
    ("gpt2", TokenTree),
    ("llama", TokenTree),
    ("window", WholeSequences),
    ("mamba", WholeSequences),
]


class Subject:
    """An evaluator of a tiny model, and the same model in transformers alone as the oracle."""

    def __init__(self, folder: Path, make: Callable[..., Evaluator]) -> None:
        from fewparse.lm.hf_backend import HFBackend

        self.backend = HFBackend(str(folder))
        self._make = make
        self.evaluator = make(self.backend)
        self._oracle = hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def fresh(self) -> Evaluator:
        self.backend.crop(0)
        return self._make(self.backend)

    def oracle(self, tokens: TokenIds) -> NDArray[np.float32]:
        with torch.no_grad():
            rows: NDArray[np.float32] = self._oracle(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
        return rows

    def check(self, evaluator: Evaluator, prompt: TokenIds, paths: Sequence[TokenIds]) -> None:
        found = evaluator.next_logits(prompt, paths, Usage())
        assert len(found) == len(paths)
        for path, row in zip(paths, found, strict=True):
            np.testing.assert_allclose(row, self.oracle(prompt + path)[-1], atol=TOLERANCE)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}-{kind[1].__name__}")
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    kind, make = request.param
    return Subject(tiny.save(tmp_path_factory.mktemp(kind), kind, tiny.byte_level()), make)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return Subject(tiny.save(tmp_path_factory.mktemp("llama"), "llama", tiny.byte_level()), TokenTree)


@pytest.fixture(scope="module", params=["default", "small"], autouse=True)
def limits(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run all tests with the default limits and with very small ones."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (token_tree, evaluator):
            for name, value in SMALL_LIMITS.items() if request.param == "small" else ():
                patch.setattr(module, name, value, raising=False)
        yield


@settings(max_examples=15)
@given(rounds=st.lists(st.tuples(any_prompt, st.lists(any_path, max_size=6)), min_size=1, max_size=4))
def test_logits_equal_the_oracle_whatever_was_evaluated_before(
    subject: Subject, rounds: list[tuple[TokenIds, list[TokenIds]]]
) -> None:
    for prompt, paths in rounds:
        subject.check(subject.evaluator, prompt, paths)


@settings(max_examples=15)
@given(prompt=any_prompt, growing=st.lists(st.lists(any_path.filter(bool), min_size=1, max_size=4), max_size=4))
def test_logits_equal_the_oracle_while_the_tree_grows(
    subject: Subject, prompt: TokenIds, growing: list[list[TokenIds]]
) -> None:
    for paths in growing:
        subject.check(subject.evaluator, prompt, paths)


@settings(max_examples=15)
@given(prompt=any_prompt, spans=st.lists(st.tuples(any_path, any_path), max_size=6))
def test_the_logits_along_a_span_are_those_before_each_of_its_tokens(
    subject: Subject, prompt: TokenIds, spans: list[Span]
) -> None:
    found: dict[Span, list[Logits]] = dict(subject.evaluator.logits_along(prompt, spans, Usage()))
    assert set(found) == {span for span in spans if span[1]}
    for (before, following), rows in found.items():
        expected = subject.oracle(prompt + before + following)[len(prompt + before) - 1 : -1]
        np.testing.assert_allclose(rows, expected, atol=TOLERANCE)


def test_a_path_longer_than_the_limits_is_evaluated(subject: Subject) -> None:
    long = tuple(3 + i * i % 7 for i in range(tiny.CONTEXT - 2))
    subject.check(subject.evaluator, (5, 4), [long, long[:30], (3,)])


def test_the_context_limits_prompt_and_path_together(subject: Subject) -> None:
    longest = subject.evaluator.context_length
    prompt = (3,) * (longest - 2)
    for evaluate in (
        lambda usage: subject.evaluator.next_logits(prompt, [(4, 4, 4)], usage),
        lambda usage: list(subject.evaluator.logits_along(prompt, [((4, 4), (4,))], usage)),
    ):
        usage = Usage()
        with pytest.raises(ContextOverflow) as caught:
            evaluate(usage)
        assert (caught.value.needed, caught.value.available) == (longest + 1, longest)
        assert usage == Usage()


def test_an_interrupted_pass_does_not_corrupt_the_cache(tree: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = tree.fresh()
    tree.check(evaluator, (3, 4, 5), [(3,), (4,)])
    evaluate = tree.backend.evaluate

    def interrupted(*arguments: object) -> list[Logits]:
        evaluate(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    for prompt in ((3, 4, 5), (3, 4, 6, 7)):  # after the current prompt, and in a new one
        monkeypatch.setattr(tree.backend, "evaluate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluator.next_logits(prompt, [(3, 3), (4, 3)], Usage())
        monkeypatch.undo()
        tree.check(evaluator, prompt, [(3, 3), (4, 3), ()])


@pytest.mark.parametrize("limits", ["default"], indirect=True)
def test_shared_prefixes_are_evaluated_once(tree: Subject, limits: None) -> None:
    evaluator = tree.fresh()
    usage = Usage()
    evaluator.next_logits((3, 4), [(5, 6, 7), (5, 6, 8), (5, 9)], usage)
    assert (usage.prefill_tokens, usage.forward_tokens, usage.forward_passes) == (2, 5, 2)
    list(evaluator.logits_along((3, 4), [((5, 6), (7, 3)), ((5,), (6, 8))], usage))
    assert (usage.prefill_tokens, usage.forward_passes) == (2, 3)
    assert usage.forward_tokens == 5 + len({"5", "5 6", "5 6 7 3"})  # two have a cell, but no logits yet
