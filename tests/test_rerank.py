"""Reranking: how well an output explains an utterance, and that the parser sorts by it."""

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
    """IBM Model 1 as Brown et al. (1993) write it, with every table written out over the whole vocabulary."""
    corpus = [(words(u), [*words(o), "NULL"]) for u, o in pairs]
    spoken = sorted({f for said, _ in corpus for f in said})
    meant = sorted({e for _, sources in corpus for e in sources})
    t = {(f, e): 1 / len(spoken) for f in spoken for e in meant}
    for _ in range(ITERATIONS):
        count = dict.fromkeys(t, 0.0)
        for said, sources in corpus:
            for f in said:
                for e in sources:
                    count[f, e] += t[f, e] / sum(t[f, other] for other in sources)
        t = {(f, e): count[f, e] / sum(count[g, e] for g in spoken) for f in spoken for e in meant}
    sources = [*words(output), "NULL"]
    logs = []
    for f in words(utterance):
        translated = sum(t.get((f, e), 0.0) for e in sources) / len(sources)
        logs.append(math.log((1 - SMOOTHING) * translated + SMOOTHING / (len(spoken) + 1)))
    return sum(logs) / max(1, len(logs))


@pytest.mark.parametrize("utterance", [UTTERANCE, "wake me at 8", "Turn on the RADIO!", "play jazz", ""])
@pytest.mark.parametrize("output", ["(set lamp off)", "(alarm 8)", "(alarm 7:30am)", "(unknown)", ""])
def test_the_score_is_that_of_ibm_model_1(utterance: str, output: str) -> None:
    assert Alignment(PAIRS).score(utterance, output) == pytest.approx(model_one(PAIRS, utterance, output))


def test_one_pair_of_one_word_each_can_be_worked_out_by_hand() -> None:
    # p(hello | greet) = p(hello | nothing) = 1, so all that is lost is what is kept for unseen words: of 1% half.
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


def test_case_and_punctuation_do_not_count() -> None:
    alignment = Alignment(PAIRS)
    assert alignment.score("Turn OFF the lamp!", "(SET lamp off)") == alignment.score(
        "turn off the lamp", "set lamp off"
    )


@given(st.text(), st.text(), st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), max_size=4))
def test_any_text_has_a_finite_score_and_the_same_one_each_time(
    utterance: str, output: str, pairs: list[tuple[str, str]]
) -> None:
    score = Alignment(pairs).score(utterance, output)
    assert math.isfinite(score)
    assert score <= 1e-9
    assert Alignment(pairs).score(utterance, output) == score


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter domain, its settings as they are."""
    return make_domain("home", tmp_path_factory.mktemp("rerank") / "home")


def test_the_parser_keeps_the_model_s_order_at_weight_zero_and_sorts_by_the_sum_above(
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
    assert heavy.output == explained.text, "at such a weight the alignment alone decides"
