"""The laws of search, on a model small enough for exhaustive oracles."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fewparse.constrain.state import MAX_STATES, Constraint
from fewparse.constrain.trie import Trie
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.errors import ModelError, UnknownName, UsageError
from fewparse.events import BackedOff, Branched, Completed, Event, Forced, RoundEnded, RoundStarted, Sampled
from fewparse.lm.model import Completion, Guide, NextTokens, Prefix, Sampling, Token
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.decode import decode
from fewparse.search.hypothesis import Hypothesis
from fewparse.search.settings import SearchSettings
from fewparse.vocabulary import BYTES, Mask
from support.byte_model import ByteModel
from support.toy_model import ANYTHING, TOKENS, ToyModel

seeds = st.integers(0, 10_000)
words = st.sets(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=12)
# "ab" and "bc" are tokens of the toy model: words without a `b` have only one tokenisation.
plain_words = st.sets(st.text("ac", min_size=1, max_size=4), min_size=1, max_size=20)
any_settings = st.builds(
    SearchSettings,
    decoder=st.sampled_from(["greedy", "beam", "speculative"]),
    width=st.integers(1, 6),
    temperature=st.sampled_from([0.0, 0.5, 1.5]),
    max_tokens=st.just(12),
    rounds=st.integers(1, 5),
    seed=st.integers(0, 5),
    alternatives=st.sampled_from([0, 3, 20]),
    free_back_off=st.booleans(),
    free_branching=st.booleans(),
    forced_spans=st.booleans(),
)


def search(
    model: ToyModel, constraint: Constraint, settings: SearchSettings
) -> tuple[list[Hypothesis], list[Event]]:
    events: list[Event] = []
    return decode(model, ANYTHING, constraint, settings, Usage(), events.append), events


def true_score(model: ToyModel, tokens: list[Token]) -> float:
    """Compute the score by the formula of the paper, from the model's own tables."""
    context = [*ANYTHING.text.encode()]
    total = 0.0
    for token in tokens:
        total += model.logprobs(context)[token.id]
        context.append(token.id)
    row = model.logprobs(context)
    ending = sum(math.exp(row[i]) for i, text in enumerate(TOKENS) if text.startswith(b"\n") or text == b"")
    length = len(tokens) + 1
    return (total + math.log(ending)) / math.pow((5 + length) / 6, 0.7)


@given(seed=seeds, strings=plain_words)
def test_a_beam_wider_than_the_set_ranks_all_strings_by_their_true_scores(seed: int, strings: set[str]) -> None:
    model = ToyModel(seed)
    settings = SearchSettings(decoder="beam", width=100, max_tokens=12)
    found, _ = search(model, Trie(strings, model.vocabulary), settings)
    scores = {s.encode(): true_score(model, [Token(bytes([b]), b) for b in s.encode()]) for s in strings}
    assert [h.text for h in found] == sorted(scores, key=lambda text: -scores[text])
    assert [h.score for h in found] == pytest.approx([scores[h.text] for h in found])


@given(seed=seeds, strings=words)
def test_a_beam_wider_than_the_set_finds_every_string(seed: int, strings: set[str]) -> None:
    model = ToyModel(seed)
    found, _ = search(
        model, Trie(strings, model.vocabulary), SearchSettings(decoder="beam", width=100, max_tokens=12)
    )
    assert {h.text for h in found} == {s.encode() for s in strings}


@given(seed=seeds, strings=words, settings=any_settings)
def test_outputs_are_well_formed_distinct_and_sorted_for_all_settings(
    seed: int, strings: set[str], settings: SearchSettings
) -> None:
    model = ToyModel(seed)
    constraint = Trie(strings, model.vocabulary)
    found, _ = search(model, constraint, settings)
    assert found
    assert all(h.finished and constraint.accepts(h.text) for h in found)
    assert len({h.text for h in found}) == len(found)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


@given(seed=seeds, strings=words, settings=any_settings)
def test_the_score_of_a_finished_hypothesis_does_not_depend_on_the_search(
    seed: int, strings: set[str], settings: SearchSettings
) -> None:
    model = ToyModel(seed)
    found, _ = search(model, Trie(strings, model.vocabulary), settings)
    for hypothesis in found:
        assert hypothesis.score == pytest.approx(true_score(model, list(hypothesis.tokens)))


@given(seed=seeds, strings=words, settings=any_settings)
def test_the_same_seed_gives_the_same_search(seed: int, strings: set[str], settings: SearchSettings) -> None:
    one, other = (search(ToyModel(seed), Trie(strings, ToyModel().vocabulary), settings) for _ in range(2))
    assert [(h.text, h.score) for h in one[0]] == [(h.text, h.score) for h in other[0]]
    assert one[1] == other[1]


@given(seed=seeds, strings=words, settings=any_settings)
def test_the_stream_of_events_is_well_formed(seed: int, strings: set[str], settings: SearchSettings) -> None:
    model = ToyModel(seed)
    constraint = Trie(strings, model.vocabulary)
    found, events = search(model, constraint, settings)
    rounds = [e for e in events if isinstance(e, RoundStarted | RoundEnded)]
    assert [type(e) for e in rounds] == [RoundStarted, RoundEnded] * (len(rounds) // 2)
    assert [e.number for e in rounds] == [1 + i // 2 for i in range(len(rounds))]
    assert events[0] == rounds[0]
    assert events[-1] == rounds[-1] or isinstance(events[-1], Completed)
    for ended, began in pairwise(rounds[1:]):
        if isinstance(ended, RoundEnded) and isinstance(began, RoundStarted):
            assert set(began.prefixes) <= {k.text for k in ended.kept if not k.finished} | {b""}
    for event in events:
        match event:
            case RoundEnded(_, kept):
                assert len(kept) <= settings.width
                assert [k.score for k in kept] == sorted((k.score for k in kept), reverse=True)
            case Sampled(prefix, pieces, valid, outcome):
                tokens = [prefix, *pieces] if prefix else list(pieces)
                count, state = constraint.start().walk(tokens)
                assert count == len(tokens) - len(pieces) + valid
                assert outcome != "finished" or state.may_end
            case BackedOff(prefix, _, choices):
                assert all(begins(constraint, prefix + choice) for choice in choices)
            case Branched(prefix, piece):
                assert begins(constraint, prefix + piece)
            case Forced(prefix, span):
                assert begins(constraint, prefix + span)
                assert all(
                    s.startswith((prefix + span).decode()) for s in strings if s.encode().startswith(prefix)
                )
    assert isinstance(rounds[-1], RoundEnded)
    assert {k.text for k in rounds[-1].kept if k.finished} <= {h.text for h in found}


def begins(constraint: Constraint, text: bytes) -> bool:
    return constraint.start().advance(text) is not None


@given(seed=seeds)
def test_greedy_appends_the_best_token_until_the_end_is_better(seed: int) -> None:
    model = ToyModel(seed)
    output: tuple[Token, ...] = ()
    while len(output) < 8:
        answer = model.next_tokens(ANYTHING, [output], 1, b"\n", Usage())[0]
        if output and answer.end_logprob > answer.best[0].logprob:
            break
        output = (*output, answer.best[0].token)
    found, _ = search(model, Unconstrained(model.vocabulary), SearchSettings(decoder="greedy", max_tokens=8))
    assert [h.tokens for h in found] == [output]


@given(seed=seeds, decoys=words)
def test_the_constraint_does_not_change_a_greedy_output_that_is_well_formed(seed: int, decoys: set[str]) -> None:
    model = ToyModel(seed)
    greedy = SearchSettings(decoder="greedy", max_tokens=8)
    free, _ = search(model, Unconstrained(model.vocabulary), greedy)
    assume(free and free[0].text.isascii())
    output = free[0].text.decode()
    prefixes = {output[:i] for i in range(1, len(output))}
    constrained, _ = search(model, Trie({output, output + "a", *prefixes, *decoys}, model.vocabulary), greedy)
    assert [(h.text, h.score) for h in constrained] == [(free[0].text, free[0].score)]


@given(seed=seeds, settings=any_settings)
def test_an_unconstrained_output_has_no_token_that_begins_with_the_stop(
    seed: int, settings: SearchSettings
) -> None:
    model = ToyModel(seed)
    found, _ = search(model, Unconstrained(model.vocabulary), settings)
    assert not [t for h in found for t in h.tokens if t.bytes.startswith(b"\n")]


@given(seed=seeds, strings=words, width=st.integers(1, 5), decoder=st.sampled_from(["greedy", "beam"]))
def test_the_search_without_a_vocabulary_has_the_same_results(
    seed: int, strings: set[str], width: int, decoder: str
) -> None:
    model = ToyModel(seed)
    settings = replace(SearchSettings(width=width, max_tokens=12, alternatives=len(TOKENS)), decoder=decoder)
    expected = decode(model, ANYTHING, Trie(strings, model.vocabulary), settings, Usage())
    found = decode(ByteModel(model), ANYTHING, Trie(strings, BYTES), settings, Usage())
    assert [(h.text, h.score) for h in found] == [(h.text, h.score) for h in expected]


@given(seed=seeds, strings=words, settings=any_settings)
def test_a_model_without_a_vocabulary_gives_well_formed_outputs(
    seed: int, strings: set[str], settings: SearchSettings
) -> None:
    model = ToyModel(seed)
    found = decode(ByteModel(model), ANYTHING, Trie(strings, BYTES), replace(settings, alternatives=300), Usage())
    assert found
    assert {h.text.decode() for h in found} <= strings


def test_after_the_last_round_the_search_continues_greedily() -> None:
    model = ToyModel(3)
    constraint = Trie(["zzzzzzzz"], model.vocabulary)
    settings = SearchSettings(width=2, rounds=1, max_tokens=12, free_back_off=False)
    found, events = search(model, constraint, settings)
    assert [h.text for h in found] == [b"zzzzzzzz"]
    assert max(e.number for e in events if isinstance(e, RoundStarted)) > 1


@pytest.mark.parametrize("decoder", ["greedy", "beam", "speculative"])
@pytest.mark.parametrize("forced_spans", [True, False])
def test_an_output_at_the_token_limit_gets_the_shortest_completion(decoder: str, forced_spans: bool) -> None:
    model = ToyModel()
    settings = replace(SearchSettings(max_tokens=2, forced_spans=forced_spans), decoder=decoder)
    found, events = search(model, Trie(["caca", "cacacaca", "aaaa", "aaaaaa"], model.vocabulary), settings)
    completed = [e for e in events if isinstance(e, Completed)]
    assert [h.text for h in found] in ([b"caca"], [b"aaaa"])
    assert [e.prefix + e.completion for e in completed] == [found[0].text]
    assert found[0].score == pytest.approx(true_score(model, list(found[0].tokens)))


def test_an_output_that_cannot_be_completed_is_dropped() -> None:
    model = ToyModel()
    endless = Trie(["a" * (MAX_STATES + 10)], model.vocabulary)
    assert search(model, endless, SearchSettings(decoder="greedy", max_tokens=2))[0] == []


@given(seed=seeds, strings=words, settings=any_settings, max_tokens=st.integers(1, 4))
def test_only_a_completed_output_is_longer_than_the_token_limit(
    seed: int, strings: set[str], settings: SearchSettings, max_tokens: int
) -> None:
    model = ToyModel(seed)
    found, events = search(model, Trie(strings, model.vocabulary), replace(settings, max_tokens=max_tokens))
    assert {h.text.decode() for h in found} <= strings
    if not [e for e in events if isinstance(e, Completed)]:
        assert all(len(h.tokens) <= max_tokens for h in found)


@pytest.mark.parametrize(
    "wrong", [{"width": 0}, {"width": 101}, {"temperature": -1}, {"max_tokens": 0}, {"rounds": 0}, {"seed": -1}]
)
def test_settings_out_of_range_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(SearchSettings(), **wrong)


def test_an_unknown_decoder_is_reported_with_a_suggestion() -> None:
    with pytest.raises(UnknownName) as caught:
        SearchSettings(decoder="beems")
    assert caught.value.hint == "Did you mean beam?"


class WrongNumbers(ToyModel):
    """A model with the same wrong log-probability for every token."""

    def __init__(self, wrong: float) -> None:
        super().__init__()
        self._wrong = wrong

    def logprobs(self, context: Sequence[int]) -> list[float]:
        return [self._wrong] * len(TOKENS)

    def next_tokens(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        k: int,
        stop: bytes,
        usage: Usage,
        allowed: Sequence[Mask] | None = None,
    ) -> list[NextTokens]:
        found = ToyModel().next_tokens(prompt, prefixes, k, stop, usage, allowed)
        return [
            each._replace(best=tuple(s._replace(logprob=self._wrong) for s in each.best), end_logprob=self._wrong)
            for each in found
        ]

    def sample(
        self,
        prompt: Prompt,
        prefixes: Sequence[Prefix],
        sampling: Sampling,
        usage: Usage,
        guides: Sequence[Guide | None] = (),
    ) -> list[list[Completion]]:
        completions = ToyModel().sample(prompt, prefixes, sampling, usage, guides)
        return [[c._replace(logprobs=(self._wrong,) * len(c.tokens)) for c in group] for group in completions]


@pytest.mark.parametrize("decoder", ["greedy", "beam", "speculative"])
@pytest.mark.parametrize("forced_spans", [False, True])
@pytest.mark.parametrize("max_tokens", [2, 12])
def test_a_model_that_returns_nan_is_an_error(decoder: str, forced_spans: bool, max_tokens: int) -> None:
    settings = SearchSettings(decoder=decoder, forced_spans=forced_spans, max_tokens=max_tokens)
    model = WrongNumbers(math.nan)
    with pytest.raises(ModelError, match="log-probability nan"):
        search(model, Trie(["caccacca"], model.vocabulary), settings)


@pytest.mark.parametrize("decoder", ["greedy", "beam", "speculative"])
def test_an_output_of_probability_zero_has_a_finite_score(decoder: str) -> None:
    model = WrongNumbers(-math.inf)
    found, _ = search(model, Trie(["ca", "ac"], model.vocabulary), SearchSettings(decoder=decoder))
    assert found
    assert {h.text for h in found} <= {b"ca", b"ac"}
    assert all(math.isfinite(h.score) for h in found)
