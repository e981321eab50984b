"""Search with models that report only the bytes of a few best tokens, or only complete outputs."""

import math
from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.state import Constraint
from fewparse.constrain.trie import Trie
from fewparse.errors import UsageError
from fewparse.events import Completed, Event, RoundStarted, Spelled
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, Sampling, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.decode import decode
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import SearchSettings
from fewparse.vocabulary import BYTES, Mask
from support.byte_model import ByteModel
from support.toy_model import ANYTHING, ToyModel

REPORTED = 3
GRAMMAR = read_grammar(
    'start: "(" verb " " noun+ ")"\nverb: "xz" | "ask" | "zw"\nnoun: "é" | "日" | "b" | "q:" noun'
)

seeds = st.integers(0, 10_000)
rare_words = st.sets(st.text("abxyz日é", min_size=1, max_size=5), min_size=1, max_size=8)
any_settings = st.builds(
    SearchSettings,
    decoder=st.sampled_from(["greedy", "beam", "speculative"]),
    width=st.integers(1, 5),
    temperature=st.sampled_from([0.0, 0.5, 1.5]),
    max_tokens=st.sampled_from([2, 12]),
    rounds=st.integers(1, 4),
    seed=st.integers(0, 5),
    alternatives=st.sampled_from([0, 3, 20]),
    free_back_off=st.booleans(),
    free_branching=st.booleans(),
    forced_spans=st.booleans(),
)


class TopTokensModel(ByteModel):
    """Reports the three best tokens of a position; any other token is at most as probable as the last of them."""

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        return [
            truncated(a) for a in super().next_tokens(prompt, prefixes, min(k, REPORTED), stop, usage, allowed)
        ]

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        groups = super().sample(prompt, prefixes, sampling, usage, guides)
        return [[c._replace(positions=tuple(map(truncated, c.positions))) for c in group] for group in groups]

    def _with_ids(self, tokens: Prefix) -> Prefix:
        return tokenized(tokens)


class CompleteOutputsModel(TopTokensModel):
    """Has no prefix continuation, like most chat models."""

    supports_prefix = False

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        answers = super().next_tokens(prompt, prefixes, k, stop, usage, allowed)
        return [
            NextTokens((), 0.0) if prefix else answer for prefix, answer in zip(prefixes, answers, strict=True)
        ]

    def score(
        self, prompt: Prompt, prefixes: Sequence[Prefix], continuations: Sequence[Prefix], usage: Usage
    ) -> list[tuple[float, ...]]:
        raise AssertionError("the model cannot score a text")


def truncated(answer: NextTokens) -> NextTokens:
    best = answer.best[:REPORTED]
    return answer._replace(best=best, complete=False, bound=best[-1].logprob if best else 0.0)


def tokenized(tokens: Prefix) -> Prefix:
    """Return a prefix in tokens of the toy model; a span that is not a token is split into bytes."""
    ids = ToyModel().vocabulary.ids
    pieces = [[t.bytes] if t.bytes in ids else [bytes([b]) for b in t.bytes] for t in tokens]
    return tuple(Token(piece, ids[piece]) for piece in chain.from_iterable(pieces))


def exact_logprob(model: ToyModel, tokens: Prefix) -> float:
    """Return the exact log-probability of a finished output."""
    path = tokenized(tokens)
    end = model.next_tokens(ANYTHING, [path], 1, b"\n", Usage())[0].end_logprob
    return math.fsum(model.score(ANYTHING, [()], [path], Usage())[0]) + end


def search(
    model: ByteModel, constraint: Constraint, settings: SearchSettings
) -> tuple[list[Hypothesis], list[Event]]:
    events: list[Event] = []
    return decode(model, ANYTHING, constraint, settings, Usage(), events.append), events


constraints = st.one_of(
    rare_words.map(lambda words: Trie(words, BYTES)),
    rare_words.map(lambda words: Trie([f" {word}" for word in words], BYTES)),
    st.just(CfgConstraint(GRAMMAR, BYTES)),
)


@given(seed=seeds, constraint=constraints, settings=any_settings)
def test_search_returns_well_formed_outputs_for_any_constraint(
    seed: int, constraint: Constraint, settings: SearchSettings
) -> None:
    found, _ = search(TopTokensModel(ToyModel(seed)), constraint, settings)
    assert found
    assert all(h.finished and constraint.accepts(h.text) for h in found)
    assert len({h.text for h in found}) == len(found)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


@given(seed=seeds, constraint=constraints, settings=any_settings)
def test_the_log_probability_is_exact_or_an_upper_bound(
    seed: int, constraint: Constraint, settings: SearchSettings
) -> None:
    model = ToyModel(seed)
    found, events = search(TopTokensModel(model), constraint, settings)
    spelled = {span for event in events if isinstance(event, Spelled) for span in event.spans}
    for hypothesis in found:
        true = exact_logprob(model, hypothesis.tokens)
        assert hypothesis.logprob >= true - 1e-6
        if not any(token.bytes in spelled for token in hypothesis.tokens):
            assert hypothesis.logprob == pytest.approx(true)


@given(seed=seeds, decoder=st.sampled_from(["greedy", "beam", "speculative"]), width=st.integers(1, 5))
def test_if_no_listed_token_is_allowed_the_constraint_provides_a_span_or_characters(
    seed: int, decoder: str, width: int
) -> None:
    settings = SearchSettings(decoder=decoder, width=width, max_tokens=12, alternatives=REPORTED)
    found, events = search(TopTokensModel(ToyModel(seed)), Trie(["wxyz", "wxyw"], BYTES), settings)
    spelled = [event for event in events if isinstance(event, Spelled)]
    assert Spelled(b"", (b"wxy",)) in spelled
    assert Spelled(b"wxy", (b"w", b"z")) in spelled
    assert {h.text for h in found} <= {b"wxyz", b"wxyw"}
    assert found[0].tokens[0].bytes == b"wxy"


def test_a_character_of_several_bytes_is_not_split() -> None:
    found, events = search(
        TopTokensModel(ToyModel()),
        Trie(["日本", "é!"], BYTES),
        SearchSettings(decoder="beam", width=3, max_tokens=12),
    )
    assert Spelled(b"", ("é".encode(), "日".encode())) in events
    assert {h.text.decode() for h in found} == {"日本", "é!"}


@given(seed=seeds, constraint=constraints, settings=any_settings)
def test_without_prefix_continuation_one_round_is_run_and_cut_outputs_are_completed(
    seed: int, constraint: Constraint, settings: SearchSettings
) -> None:
    model = CompleteOutputsModel(ToyModel(seed))
    if settings.decoder != "speculative":
        with pytest.raises(UsageError) as caught:
            search(model, constraint, settings)
        assert caught.value.hint == "Use --decoder speculative."
        return
    found, events = search(model, constraint, settings)
    assert sum(isinstance(event, RoundStarted) for event in events) == 1
    assert found
    assert all(h.finished and constraint.accepts(h.text) and h.logprob <= 0 for h in found)
    completed = [event for event in events if isinstance(event, Completed)]
    assert [event.prefix + event.completion for event in completed] in ([], [found[0].text])
