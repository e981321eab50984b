"""In paper mode, speculative decoding is the listing of the paper: compared with an independent transcription."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse import Parser
from fewparse.constrain.state import Constraint
from fewparse.constrain.trie import Trie
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.domains.load import load_domain
from fewparse.events import BackedOff, Event, RoundEnded, Sampled
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.decode import decode
from fewparse.search.settings import SearchSettings
from support.campaign import sizes
from support.paper_listing import Listing, Tokens, length_normalized_logprob, text_of
from support.recorded_model import RecordedModel
from support.toy_model import ANYTHING, ToyModel

WIDTHS = (1, 5, 10)
LISTING: dict[str, Any] = {
    "free_back_off": False,
    "free_branching": False,
    "forced_spans": False,
    "margin": math.inf,
    "paper": True,
}
words = st.sets(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=12)


def assert_follows_the_listing(
    model: LanguageModel, prompt: Prompt, constraint: Constraint, settings: SearchSettings
) -> list[Event]:
    """Compare what each round keeps, the outputs and the number of model calls; return the events."""
    recorded, usage, events = RecordedModel(model), Usage(), list[Event]()
    found = decode(recorded, prompt, constraint, settings, usage, events.append)
    listing = Listing(recorded, constraint, settings.width, settings.rounds, settings.max_tokens)
    finished = listing.search()

    rounds = [event.kept for event in events if isinstance(event, RoundEnded)]
    for kept, expected in zip(rounds, listing.kept, strict=False):
        assert Counter((k.text, k.finished) for k in kept) == Counter(
            (text_of(tokens), listing.is_finished(tokens)) for tokens in expected
        )
        assert [k.score for k in kept] == pytest.approx(scores(expected))
    # A round in which every state has reached the length limit makes no call.
    assert listing.kept[len(rounds) :] in ([], [finished])
    best: dict[bytes, float] = {}
    for tokens in finished:
        text, score = text_of(tokens), length_normalized_logprob(tokens)
        best[text] = max(score, best.get(text, score))
    assert {h.text: h.score for h in found} == pytest.approx(best)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert listing.calls == usage.requests
    assert recorded.not_taken == 0
    return events


def scores(sequences: list[Tokens]) -> list[float]:
    return sorted(map(length_normalized_logprob, sequences), reverse=True)


@sizes("count", default=1, campaign=60)
def test_calendar_items_are_parsed_as_by_the_listing(model: EmbeddedModel, count: int) -> None:
    domain = load_domain("calendar", paper=True)
    # The paper's retriever scores every example of the pool: it is slow, and no part of the search.
    parsers = [Parser.from_domain(domain, model, retriever="bm25", width=width) for width in WIDTHS]
    for item in domain.test_examples[:count]:
        for parser in parsers:
            _, prompt = parser.prompt(item.utterance)
            constraint = domain.constraint(
                model.vocabulary, parser.options.target, item.utterance, parser.template
            )
            assert_follows_the_listing(model, prompt, constraint, parser.options.search)


@given(
    seed=st.integers(0, 10_000),
    strings=words,
    width=st.sampled_from(WIDTHS),
    temperature=st.sampled_from([0.0, 0.5, 1.5]),
    rounds=st.sampled_from([1, 3, 16]),
    max_tokens=st.sampled_from([2, 4, 12]),
)
def test_every_search_follows_the_listing(
    seed: int, strings: set[str], width: int, temperature: float, rounds: int, max_tokens: int
) -> None:
    model = ToyModel(seed)
    settings = SearchSettings(
        width=width, temperature=temperature, rounds=rounds, max_tokens=max_tokens, seed=seed % 7, **LISTING
    )
    assert_follows_the_listing(model, ANYTHING, Trie(strings, model.vocabulary), settings)


@given(seed=st.integers(0, 10_000), width=st.sampled_from(WIDTHS))
def test_an_unconstrained_search_follows_the_listing(seed: int, width: int) -> None:
    model = ToyModel(seed)
    settings = SearchSettings(width=width, max_tokens=8, **LISTING)
    assert_follows_the_listing(model, ANYTHING, Unconstrained(model.vocabulary), settings)


def test_equal_samples_fill_several_slots() -> None:
    model = ToyModel(1)
    settings = SearchSettings(width=5, temperature=0, max_tokens=12, **LISTING)
    events = assert_follows_the_listing(model, ANYTHING, Trie(["ca", "ac", "bb"], model.vocabulary), settings)
    first = next(event for event in events if isinstance(event, RoundEnded))
    assert len(first.kept) == 5
    assert len({kept.text for kept in first.kept}) == 1


def test_each_sample_without_a_valid_token_backs_off_with_one_query_for_all() -> None:
    model = ToyModel(3)
    constraint = Trie(["zz", "zy"], model.vocabulary)
    usage = Usage()
    events: list[Event] = []
    settings = SearchSettings(width=4, rounds=1, max_tokens=12, **LISTING)
    assert decode(model, ANYTHING, constraint, settings, usage, events.append) == []
    assert [event.outcome for event in events if isinstance(event, Sampled)] == ["rejected"] * 4
    assert usage.requests == 2
    kept = next(event.kept for event in events if isinstance(event, RoundEnded))
    assert [k.text for k in kept] == [b"z"] * 4


@pytest.mark.parametrize("decoder", ["speculative", "beam", "greedy"])
def test_there_is_no_output_if_nothing_finished(decoder: str) -> None:
    model = ToyModel()
    constraint = Trie(["caca", "cacacaca", "aaaa", "aaaaaa"], model.vocabulary)
    settings = SearchSettings(decoder=decoder, max_tokens=2, **LISTING)
    assert decode(model, ANYTHING, constraint, settings, Usage()) == []
    assert decode(model, ANYTHING, constraint, replace(settings, paper=False), Usage()) != []


@given(seed=st.integers(0, 10_000), strings=words, width=st.integers(1, 6))
def test_only_finished_hypotheses_in_the_last_beam_are_outputs(seed: int, strings: set[str], width: int) -> None:
    model = ToyModel(seed)
    events: list[Event] = []
    settings = SearchSettings(decoder="beam", width=width, max_tokens=12, **LISTING)
    found = decode(model, ANYTHING, Trie(strings, model.vocabulary), settings, Usage(), events.append)
    last = [event for event in events if isinstance(event, RoundEnded)][-1]
    assert {h.text for h in found} == {kept.text for kept in last.kept if kept.finished}


def test_with_an_improvement_the_search_is_not_the_listing() -> None:
    settings = SearchSettings(width=4, max_tokens=12, **LISTING)
    assert settings.follows_listing
    assert not replace(settings, paper=False).follows_listing
    improvements: list[dict[str, Any]] = [
        {"free_back_off": True},
        {"free_branching": True},
        {"forced_spans": True},
        {"margin": 1.0},
    ]
    for improvement in improvements:
        assert not replace(settings, **improvement).follows_listing
    model = ToyModel(3)
    events: list[Event] = []
    improved = replace(settings, free_back_off=True, alternatives=300)
    decode(model, ANYTHING, Trie(["zz", "zy"], model.vocabulary), improved, Usage(), events.append)
    assert any(event.free for event in events if isinstance(event, BackedOff))
