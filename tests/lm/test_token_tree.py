"""Token trees and whole sequences: both give what the model itself says of every path, alone and in full."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fewparse.errors import ContextOverflow
from fewparse.lm import token_tree, whole_sequences
from fewparse.lm.local import Evaluator
from fewparse.lm.paths import Logits
from fewparse.lm.paths import Path as Tokens
from fewparse.lm.token_tree import TokenTree
from fewparse.lm.usage import Usage
from fewparse.lm.whole_sequences import WholeSequences
from support import tiny_checkpoints as tiny

torch = pytest.importorskip("torch", reason="torch is not installed: it belongs to the extra `transformers`")
hf = pytest.importorskip("transformers", reason="transformers is not installed: it is an extra")

CLOSE = 1e-3
SMALL_LIMITS = {"TOKENS_A_PASS": 3, "ROOM_FOR_TAILS": 7, "REMEMBERED": 2, "ROWS_A_BATCH": 4}
paths = st.lists(st.integers(3, 5), max_size=6).map(tuple)
prompts = st.lists(st.integers(3, 5), min_size=1, max_size=6).map(tuple)

KINDS: list[tuple[str, Callable[..., Evaluator]]] = [
    ("gpt2", TokenTree),
    ("llama", TokenTree),
    ("window", WholeSequences),
    ("mamba", WholeSequences),
]


class Asked:
    """An evaluator over a tiny checkpoint, and the same checkpoint opened by transformers alone: the oracle."""

    def __init__(self, folder: Path, evaluator: Callable[..., Evaluator]) -> None:
        from fewparse.lm.hf_backend import Checkpoint

        self.checkpoint = Checkpoint(str(folder))
        self._make = evaluator
        self.evaluator = evaluator(self.checkpoint)
        self._oracle = hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def fresh(self) -> Evaluator:
        self.checkpoint.crop(0)
        return self._make(self.checkpoint)

    def straight(self, tokens: Tokens) -> NDArray[np.float32]:
        with torch.no_grad():
            rows: NDArray[np.float32] = self._oracle(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
        return rows

    def check(self, evaluator: Evaluator, prompt: Tokens, tails: Sequence[Tokens]) -> None:
        found = evaluator.after(prompt, tails, Usage())
        assert len(found) == len(tails)
        for tail, row in zip(tails, found, strict=True):
            np.testing.assert_allclose(row, self.straight(prompt + tail)[-1], atol=CLOSE)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}-{kind[1].__name__}")
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    kind, evaluator = request.param
    return Asked(tiny.save(tmp_path_factory.mktemp(kind), kind, tiny.byte_level()), evaluator)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(tiny.save(tmp_path_factory.mktemp("llama"), "llama", tiny.byte_level()), TokenTree)


@pytest.fixture(scope="module", params=["ample", "small"], autouse=True)
def limits(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything holds as well where there is next to no room."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (token_tree, whole_sequences):
            for name, value in SMALL_LIMITS.items() if request.param == "small" else ():
                patch.setattr(module, name, value, raising=False)
        yield


@settings(max_examples=15)
@given(rounds=st.lists(st.tuples(prompts, st.lists(paths, max_size=6)), min_size=1, max_size=4))
def test_paths_get_the_logits_of_straight_evaluation_whatever_was_asked_before(
    asked: Asked, rounds: list[tuple[Tokens, list[Tokens]]]
) -> None:
    for prompt, tails in rounds:
        asked.check(asked.evaluator, prompt, tails)


@settings(max_examples=15)
@given(prompt=prompts, growing=st.lists(st.lists(paths.filter(bool), min_size=1, max_size=4), max_size=4))
def test_a_tree_that_grows_behind_one_prompt_stays_right(
    asked: Asked, prompt: Tokens, growing: list[list[Tokens]]
) -> None:
    for tails in growing:
        asked.check(asked.evaluator, prompt, tails)


@settings(max_examples=15)
@given(prompt=prompts, pairs=st.lists(st.tuples(paths, paths), max_size=6))
def test_the_logits_along_a_path_are_those_before_each_of_its_tokens(
    asked: Asked, prompt: Tokens, pairs: list[tuple[Tokens, Tokens]]
) -> None:
    found: dict[tuple[Tokens, Tokens], list[Logits]] = dict(asked.evaluator.along(prompt, pairs, Usage()))
    assert set(found) == {pair for pair in pairs if pair[1]}
    for (before, following), rows in found.items():
        expected = asked.straight(prompt + before + following)[len(prompt + before) - 1 : -1]
        np.testing.assert_allclose(rows, expected, atol=CLOSE)


def test_one_path_longer_than_all_the_room_is_right(asked: Asked) -> None:
    long = tuple(3 + i * i % 7 for i in range(tiny.LONGEST - 2))
    asked.check(asked.evaluator, (5, 4), [long, long[:30], (3,)])


def test_the_context_is_a_limit_for_prompt_and_path_together(asked: Asked) -> None:
    longest = asked.evaluator.context_length
    prompt = (3,) * (longest - 2)
    for evaluate in (
        lambda usage: asked.evaluator.after(prompt, [(4, 4, 4)], usage),
        lambda usage: list(asked.evaluator.along(prompt, [((4, 4), (4,))], usage)),
    ):
        usage = Usage()
        with pytest.raises(ContextOverflow) as caught:
            evaluate(usage)
        assert (caught.value.needed, caught.value.available) == (longest + 1, longest)
        assert usage == Usage()


def test_an_interrupted_pass_leaves_nothing_wrong_behind(tree: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = tree.fresh()
    tree.check(evaluator, (3, 4, 5), [(3,), (4,)])
    whole = tree.checkpoint.evaluate

    def interrupted(*arguments: object) -> list[Logits]:
        whole(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    for prompt in ((3, 4, 5), (3, 4, 6, 7)):  # behind the present prompt, and in a new one
        monkeypatch.setattr(tree.checkpoint, "evaluate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluator.after(prompt, [(3, 3), (4, 3)], Usage())
        monkeypatch.undo()
        tree.check(evaluator, prompt, [(3, 3), (4, 3), ()])


@pytest.mark.parametrize("limits", ["ample"], indirect=True)
def test_what_paths_share_is_evaluated_once(tree: Asked, limits: None) -> None:
    evaluator = tree.fresh()
    usage = Usage()
    evaluator.after((3, 4), [(5, 6, 7), (5, 6, 8), (5, 9)], usage)
    assert (usage.prefill_tokens, usage.forward_tokens, usage.forward_passes) == (2, 5, 2)
    list(evaluator.along((3, 4), [((5, 6), (7, 3)), ((5,), (6, 8))], usage))
    assert (usage.prefill_tokens, usage.forward_passes) == (2, 3)
    assert usage.forward_tokens == 5 + len({"5", "5 6", "5 6 7 3"})  # two have a place, but no logits yet
