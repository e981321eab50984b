"""Reranking by word alignment: scores of IBM Model 1, and the order of the candidates of a parser."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.cli.domain import make_domain
from fewparse.lm.embedded import EmbeddedModel
from fewparse.parser import Parser
from fewparse.rerank import ITERATIONS, SMOOTHING, Alignment

PAIRS = [
    ("turn on the lamp", "(set lamp on)"),
    ("turn off the lamp", "(set lamp off)"),
    ("turn on the radio", "(set radio on)"),
    ("is the radio on?", "(ask radio)"),
    ("Wake me at 7:30am, not at 8", "(alarm 7:30am)"),
    ("wake me at 8", "(alarm 8)"),
]
UTTERANCE = "is the lamp off"


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+(?:[:.][a-z0-9]+)*", text.lower())


def model_one(pairs: list[tuple[str, str]], utterance: str, output: str) -> float:
    """Score by IBM Model 1 as in Brown et al. (1993), with full tables over the whole vocabulary."""
    corpus = [(words(u), [*words(o), "NULL"]) for u, o in pairs]
    vocabulary = sorted({f for targets, _ in corpus for f in targets})
    source_words = sorted({e for _, sources in corpus for e in sources})
    t = {(f, e): 1 / len(vocabulary) for f in vocabulary for e in source_words}
    for _ in range(ITERATIONS):
        count = dict.fromkeys(t, 0.0)
        for targets, sources in corpus:
            for f in targets:
                for e in sources:
                    count[f, e] += t[f, e] / sum(t[f, other] for other in sources)
        t = {(f, e): count[f, e] / sum(count[g, e] for g in vocabulary) for f in vocabulary for e in source_words}
    sources = [*words(output), "NULL"]
    logs = []
    for f in words(utterance):
        translated = sum(t.get((f, e), 0.0) for e in sources) / len(sources)
        logs.append(math.log((1 - SMOOTHING) * translated + SMOOTHING / (len(vocabulary) + 1)))
    return sum(logs) / max(1, len(logs))


@pytest.mark.parametrize("utterance", [UTTERANCE, "wake me at 8", "Turn on the RADIO!", "play jazz", ""])
@pytest.mark.parametrize("output", ["(set lamp off)", "(alarm 8)", "(alarm 7:30am)", "(unknown)", ""])
def test_the_score_equals_that_of_ibm_model_1(utterance: str, output: str) -> None:
    assert Alignment(PAIRS).score(utterance, output) == pytest.approx(model_one(PAIRS, utterance, output))


def test_the_score_of_a_one_word_corpus_equals_the_value_by_hand() -> None:
    # p(hello | greet) = p(hello | NULL) = 1; smoothing distributes 1% evenly over one known and one unknown word.
    assert Alignment([("hello", "greet")]).score("hello", "greet") == pytest.approx(math.log(0.99 + 0.01 / 2))
    assert Alignment([("hello", "greet")]).score("bye", "greet") == pytest.approx(math.log(0.01 / 2))


def test_an_output_that_explains_more_of_the_utterance_scores_higher() -> None:
    alignment = Alignment(PAIRS)
    right, half, wrong = (alignment.score("turn off the lamp", o) for o in PROGRAMS)
    assert right > half > wrong


PROGRAMS = ("(set lamp off)", "(set lamp on)", "(ask radio)")


def test_times_and_numbers_are_words() -> None:
    alignment = Alignment(PAIRS)
    assert alignment.score("wake me at 7:30am", "(alarm 7:30am)") > alignment.score(
        "wake me at 7:30am", "(alarm 8)"
    )


def test_case_and_punctuation_are_ignored() -> None:
    alignment = Alignment(PAIRS)
    assert alignment.score("Turn OFF the lamp!", "(SET lamp off)") == alignment.score(
        "turn off the lamp", "set lamp off"
    )


@given(st.text(), st.text(), st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), max_size=4))
def test_any_text_has_a_finite_deterministic_score(
    utterance: str, output: str, pairs: list[tuple[str, str]]
) -> None:
    score = Alignment(pairs).score(utterance, output)
    assert math.isfinite(score)
    assert score <= 1e-9
    assert Alignment(pairs).score(utterance, output) == score


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the starter domain."""
    return make_domain("home", tmp_path_factory.mktemp("rerank") / "home")


def test_the_parser_sorts_by_the_sum_of_model_score_and_weighted_alignment(
    home: Path, model: EmbeddedModel
) -> None:
    utterance = "heating off in the hall"
    plain = Parser.from_domain(home, model, decoder="beam", width=4, examples=3, rerank=0).parse(utterance)
    heavy_parser = Parser.from_domain(home, model, decoder="beam", width=4, examples=3, rerank=50.0)
    heavy = heavy_parser.parse(utterance)
    alignment = Alignment((e.utterance, e.program) for e in heavy_parser.domain.examples)

    assert len(plain.candidates) > 1
    assert all(c.score == c.model_score for c in plain.candidates)
    assert list(plain.candidates) == sorted(plain.candidates, key=lambda c: -c.model_score)

    assert {c.text for c in heavy.candidates} == {c.text for c in plain.candidates}
    for candidate in heavy.candidates:
        aligned = alignment.score(utterance, candidate.text)
        assert candidate.score == pytest.approx(candidate.model_score + 50.0 * aligned)
    assert [c.score for c in heavy.candidates] == sorted((c.score for c in heavy.candidates), reverse=True)
    explained = max(heavy.candidates, key=lambda c: alignment.score(utterance, c.text))
    assert heavy.output == explained.text, "at this weight the alignment decides"
