"""Scores, ranking and successors of hypotheses."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.constrain.trie import Trie
from fewparse.errors import ModelError
from fewparse.lm.model import NextTokens, ScoredToken, Token
from fewparse.search.hypothesis import Hypothesis, normalised, ranked
from fewparse.vocabulary import BYTES

START = Trie(["ab", "ac", "a"], BYTES).start()


def hypothesis_of(text: str, logprob: float, finished: bool = False) -> Hypothesis:
    tokens = tuple(Token(bytes([b]), b) for b in text.encode())
    return Hypothesis(tokens, logprob, START, finished)


@given(logprob=st.floats(-100, 0), length=st.integers(1, 200))
def test_the_score_is_the_log_probability_over_the_papers_length_penalty(logprob: float, length: int) -> None:
    assert normalised(logprob, length) == pytest.approx(logprob / ((5 + length) ** 0.7 / 6**0.7))


def test_the_end_counts_as_a_token() -> None:
    assert hypothesis_of("ab", -3.0).score == pytest.approx(-3.0 / (7 / 6) ** 0.7)
    assert hypothesis_of("ab", -3.0, finished=True).score == pytest.approx(-3.0 / (8 / 6) ** 0.7)


def test_only_the_best_tokenisation_of_a_string_is_kept() -> None:
    whole = Hypothesis((Token(b"ab", 300),), -1.0, START)
    assert ranked([hypothesis_of("ab", -5.0), whole]) == [whole]
    assert len(ranked([hypothesis_of("ab", -5.0), hypothesis_of("ab", -5.0, finished=True)])) == 2


def test_equal_scores_are_ranked_by_text_and_the_list_is_cut_to_the_limit() -> None:
    hypotheses = [
        hypothesis_of("c", -1.0),
        hypothesis_of("a", -1.0),
        hypothesis_of("b", -1.0),
        hypothesis_of("d", -0.5),
    ]
    assert [h.text for h in ranked(hypotheses, 3)] == [b"d", b"a", b"b"]


def test_successors_are_the_best_allowed_tokens_and_the_end_if_it_is_allowed() -> None:
    best = tuple(ScoredToken(Token(text, 0), -float(i)) for i, text in enumerate([b"x", b"b", b"", b"c", b"d"]))
    after_a = hypothesis_of("a", -1.0).extend(ScoredToken(Token(b"a", 97), -0.5))
    assert after_a is not None
    found = after_a.successors(NextTokens(best, -4.0), width=5)
    assert [(h.text, h.finished) for h in found] == [(b"aab", False), (b"aac", False), (b"aa", True)]
    assert [h.logprob for h in found] == pytest.approx([-2.5, -4.5, -5.5])
    assert [h.text for h in after_a.successors(NextTokens(best, -4.0), width=1)] == [b"aab", b"aa"]


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_log_probability_that_is_no_number_is_an_error_of_the_model(wrong: float) -> None:
    start = hypothesis_of("a", -1.0)
    uses: list[Callable[[], object]] = [
        lambda: hypothesis_of("a", wrong),
        lambda: start.finish(wrong),
        lambda: start.extend(ScoredToken(Token(b"a", 97), wrong)),
    ]
    for use in uses:
        with pytest.raises(ModelError, match=f"returned the log-probability {wrong}"):
            use()


def test_the_probability_zero_has_a_finite_score_below_all_others() -> None:
    impossible = hypothesis_of("a", -1.0).finish(-math.inf)
    assert math.isfinite(impossible.score)
    assert impossible.score < hypothesis_of("a", -100_000.0).score
    extended = impossible.extend(ScoredToken(Token(b"a", 97), -math.inf))
    assert extended is not None
    assert extended.logprob == impossible.logprob
