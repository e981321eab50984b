"""How hypotheses are scored and ranked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.constrain.trie import Trie
from fewparse.lm.model import NextTokens, ScoredToken, Token
from fewparse.search.hypothesis import Hypothesis, normalised, ranked
from fewparse.vocabulary import BYTES

START = Trie(["ab", "ac", "a"], BYTES).start()


def said(text: str, logprob: float, finished: bool = False) -> Hypothesis:
    tokens = tuple(Token(bytes([b]), b) for b in text.encode())
    return Hypothesis(tokens, logprob, START, finished)


@given(logprob=st.floats(-100, 0), length=st.integers(1, 200))
def test_the_score_is_the_log_probability_over_the_papers_length_penalty(logprob: float, length: int) -> None:
    assert normalised(logprob, length) == pytest.approx(logprob / ((5 + length) ** 0.7 / 6**0.7))


def test_the_ending_counts_as_a_token() -> None:
    assert said("ab", -3.0).score == pytest.approx(-3.0 / (7 / 6) ** 0.7)
    assert said("ab", -3.0, finished=True).score == pytest.approx(-3.0 / (8 / 6) ** 0.7)


def test_of_two_ways_to_say_a_string_the_better_one_stays() -> None:
    whole = Hypothesis((Token(b"ab", 300),), -1.0, START)
    assert ranked([said("ab", -5.0), whole]) == [whole]
    assert len(ranked([said("ab", -5.0), said("ab", -5.0, finished=True)])) == 2


def test_equal_scores_are_ranked_by_text_and_no_more_than_asked_for_stay() -> None:
    hypotheses = [said("c", -1.0), said("a", -1.0), said("b", -1.0), said("d", -0.5)]
    assert [h.text for h in ranked(hypotheses, 3)] == [b"d", b"a", b"b"]


def test_successors_are_the_best_allowed_tokens_and_an_ending_where_there_may_be_one() -> None:
    best = tuple(ScoredToken(Token(text, 0), -float(i)) for i, text in enumerate([b"x", b"b", b"", b"c", b"d"]))
    after_a = said("a", -1.0).extend(ScoredToken(Token(b"a", 97), -0.5))
    assert after_a is not None
    found = after_a.successors(NextTokens(best, -4.0), width=5)
    assert [(h.text, h.finished) for h in found] == [(b"aab", False), (b"aac", False), (b"aa", True)]
    assert [h.logprob for h in found] == pytest.approx([-2.5, -4.5, -5.5])
    assert [h.text for h in after_a.successors(NextTokens(best, -4.0), width=1)] == [b"aab", b"aa"]
