"""The decoders on the real model."""

from itertools import combinations

import pytest

from fewparse.constrain.state import Constraint, LeadConstraint
from fewparse.constrain.trie import Trie
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.model import LanguageModel, Prefix, Token
from fewparse.lm.usage import Usage
from fewparse.search.decode import decode
from fewparse.search.hypothesis import Hypothesis, normalised
from fewparse.search.settings import SearchSettings
from fewparse.vocabulary import BYTES, Vocabulary
from support.byte_model import ByteModel
from support.prompts import plain_prompt

NOISE = 0.5
COLOURS = [
    "red",
    "blue",
    "green",
    "yellow",
    "white",
    "black",
    "brown",
    "orange",
    "dark-red",
    "dark-blue",
    "light-green",
]
ANIMALS = [
    "cat",
    "dog",
    "cow",
    "pig",
    "hen",
    "ape",
    "ant",
    "bee",
    "bat",
    "elk",
    "emu",
    "fox",
    "gnu",
    "hog",
    "jay",
    "kid",
    "owl",
    "ox",
    "ram",
    "rat",
    "yak",
    "eel",
    "cub",
    "doe",
    "ewe",
    "asp",
    "cod",
    "pug",
    "sow",
    "kit",
]
TEXTS = ["The grass is", "Sky: blue\nBlood: red\nSnow:", "zebra, zebra, zebra,", "Say a colour:"]


def search(
    model: LanguageModel, text: str, constraint: Constraint, settings: SearchSettings, usage: Usage | None = None
) -> list[Hypothesis]:
    return decode(model, plain_prompt(text), constraint, settings, usage or Usage())


def colours(vocabulary: Vocabulary) -> Trie:
    return Trie([f" {colour}" for colour in COLOURS], vocabulary)


def scores(model: EmbeddedModel, text: str, paths: list[Prefix]) -> list[float]:
    """The normalised score of each finished token path, computed directly with the model."""
    steps = model.score(plain_prompt(text), [()] * len(paths), paths, Usage())
    ends = model.next_tokens(plain_prompt(text), paths, 1, b"\n", Usage())
    return [
        normalised(sum(logprobs) + end.end_logprob, len(path) + 1)
        for path, logprobs, end in zip(paths, steps, ends, strict=True)
    ]


def tokenisations(text: bytes, vocabulary: Vocabulary) -> list[Prefix]:
    """Return every tokenisation of a string."""
    found: list[Prefix] = []
    for count in range(len(text)):
        for cuts in combinations(range(1, len(text)), count):
            pieces = [text[a:b] for a, b in zip((0, *cuts), (*cuts, len(text)), strict=True)]
            if all(piece in vocabulary.ids for piece in pieces):
                found.append(tuple(Token(piece, vocabulary.ids[piece]) for piece in pieces))
    return found


def test_a_beam_wider_than_the_set_equals_exhaustive_scoring(model: EmbeddedModel) -> None:
    text = "On the farm I saw a"
    paths = [p for word in ANIMALS for p in tokenisations(f" {word}".encode(), model.vocabulary)]
    exhaustive: dict[bytes, float] = {}
    for path, score in zip(paths, scores(model, text, paths), strict=True):
        output = b"".join(token.bytes for token in path)
        exhaustive[output] = max(score, exhaustive.get(output, score))
    settings = SearchSettings(decoder="beam", width=len(ANIMALS) + 1, max_tokens=8)
    found = search(model, text, Trie([f" {animal}" for animal in ANIMALS], model.vocabulary), settings)
    assert len(exhaustive) == len(ANIMALS)
    assert found[0].score == pytest.approx(max(exhaustive.values()), abs=NOISE)
    assert exhaustive[found[0].text] == pytest.approx(max(exhaustive.values()), abs=NOISE)


@pytest.mark.parametrize("text", TEXTS)
def test_the_constraint_does_not_change_a_greedy_output_that_is_well_formed(
    model: EmbeddedModel, text: str
) -> None:
    greedy = SearchSettings(decoder="greedy", max_tokens=6, stop=b".")
    free = search(model, text, LeadConstraint(Unconstrained(model.vocabulary), " "), greedy)[0]
    output = free.text.decode()
    decoys = {output[: len(output) // 2], output + " and more", " something else"}
    constrained = search(model, text, Trie({output, *decoys}, model.vocabulary), greedy)[0]
    assert constrained.text == free.text
    assert constrained.score == pytest.approx(free.score, abs=NOISE)


@pytest.mark.parametrize("text", TEXTS)
def test_one_speculative_sample_at_temperature_zero_equals_greedy(model: EmbeddedModel, text: str) -> None:
    constraint = colours(model.vocabulary)
    greedy = search(model, text, constraint, SearchSettings(decoder="greedy", max_tokens=12))
    usage = Usage()
    cold = search(model, text, constraint, SearchSettings(width=1, temperature=0, max_tokens=12), usage)
    assert [h.text for h in cold] == [h.text for h in greedy]
    assert cold[0].score == pytest.approx(greedy[0].score, abs=NOISE)


@pytest.mark.parametrize(
    "settings",
    [
        SearchSettings(decoder="beam", width=4, max_tokens=12),
        SearchSettings(decoder="beam", width=3, max_tokens=12, forced_spans=True),
        SearchSettings(width=3, max_tokens=12),
        SearchSettings(width=3, max_tokens=12, free_back_off=False),
        SearchSettings(width=3, max_tokens=12, free_branching=True),
        SearchSettings(width=3, max_tokens=12, forced_spans=True),
        SearchSettings(width=2, max_tokens=12, temperature=1.5, rounds=1, free_back_off=False),
    ],
    ids=[
        "beam",
        "forced-beam",
        "speculative",
        "back-off-with-requests",
        "branching",
        "forced-spans",
        "one-round-at-high-temperature",
    ],
)
def test_every_output_is_well_formed_and_has_the_score_of_the_model(
    model: EmbeddedModel, settings: SearchSettings
) -> None:
    text = TEXTS[1]
    constraint = colours(model.vocabulary)
    found = search(model, text, constraint, settings)
    assert found
    assert all(h.finished and constraint.accepts(h.text) for h in found)
    assert len({h.text for h in found}) == len(found)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert [h.score for h in found] == pytest.approx(scores(model, text, [h.tokens for h in found]), abs=NOISE)


def test_the_same_seed_gives_the_same_search_after_another_one(model: EmbeddedModel) -> None:
    settings = SearchSettings(width=3, max_tokens=10, temperature=1.2, seed=5)
    first = search(model, TEXTS[3], colours(model.vocabulary), settings)
    search(
        model, TEXTS[0], Unconstrained(model.vocabulary), SearchSettings(width=2, max_tokens=6, temperature=1.0)
    )
    again = search(model, TEXTS[3], colours(model.vocabulary), settings)
    assert [(h.text, h.score) for h in again] == [(h.text, h.score) for h in first]


@pytest.mark.parametrize("text", TEXTS[:2])
def test_a_model_without_a_vocabulary_gives_the_same_greedy_output(model: EmbeddedModel, text: str) -> None:
    settings = SearchSettings(decoder="greedy", max_tokens=12, alternatives=5_000)
    expected = search(model, text, colours(model.vocabulary), settings)
    found = search(ByteModel(model), text, colours(BYTES), settings)
    assert [h.text for h in found] == [h.text for h in expected]
    assert found[0].score == pytest.approx(expected[0].score, abs=NOISE)


def test_a_likely_output_needs_one_speculative_round_and_one_greedy_round_per_token(model: EmbeddedModel) -> None:
    text = "blue: blue\nred: red\ndark-red: dark-red\ndark-blue:"
    speculated, stepped = Usage(), Usage()
    cold = search(
        model, text, colours(model.vocabulary), SearchSettings(width=1, temperature=0, max_tokens=12), speculated
    )
    greedy = search(
        model, text, colours(model.vocabulary), SearchSettings(decoder="greedy", max_tokens=12), stepped
    )
    assert cold[0].text == greedy[0].text == b" dark-blue"
    assert speculated.rounds == 1
    assert stepped.rounds == len(greedy[0].tokens) + 1
