"""Rerank the candidates of a search: by a noisy channel model, or by a vote over their answers or programs.

A small language model often drops part of the request. The noisy channel adds p(utterance | output): IBM Model 1,
estimated from the domain's examples in a fraction of a second, gives a low score to candidates that leave words
of the utterance unexplained.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Protocol

from fewparse.errors import ExecutionError
from fewparse.example import Candidate, answer_text

UTTERANCE_WORD = re.compile(r"\w+(?:[:.]\w+)*|'\w+")
OUTPUT_WORD = re.compile(r"\w+(?:[-:.]\w+)*")
NULL_WORD = ""
SMOOTHING = 0.01
ITERATIONS = 6


class Reranker(Protocol):
    """Scores an output for an utterance; the score is added to the model's, weighted by `rerank`."""

    def score(self, utterance: str, output: str) -> float:
        """Return a score; higher is better."""


class Alignment:
    """p(utterance | output) by IBM Model 1, estimated from pairs."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        words = [(utterance_words(u), output_words(o)) for u, o in pairs]
        self._vocabulary = len({word for utterance, _ in words for word in utterance}) + 1
        self._table = estimate(words)

    def score(self, utterance: str, output: str) -> float:
        """Return the mean log-probability of the words of an utterance, given an output."""
        scores = self.word_scores(utterance, output)
        return sum(scores) / max(1, len(scores))

    def word_scores(self, utterance: str, output: str) -> list[float]:
        """Return the log-probability of each word of an utterance, given an output."""
        sources = output_words(output)
        scores = []
        for word in utterance_words(utterance):
            row = self._table.get(word, {})
            share = sum(row.get(source, 0.0) for source in sources) / len(sources)
            scores.append(math.log((1 - SMOOTHING) * share + SMOOTHING / self._vocabulary))
        return scores


@lru_cache(maxsize=4)
def alignment_of(pairs: tuple[tuple[str, str], ...]) -> Alignment:
    """Return the alignment of pairs; that of the same pairs is estimated once."""
    return Alignment(pairs)


def estimate(pairs: Sequence[tuple[list[str], list[str]]]) -> dict[str, dict[str, float]]:
    """Run expectation maximisation; table[word][source] = p(word | source)."""
    table: dict[str, dict[str, float]] = defaultdict(dict)
    for words, sources in pairs:
        for word in words:
            for source in sources:
                table[word][source] = 1.0
    for _ in range(ITERATIONS):
        counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        totals: dict[str, float] = defaultdict(float)
        for words, sources in pairs:
            for word in words:
                row, count = table[word], counts[word]
                values = [row[source] for source in sources]
                total = sum(values)
                for source, value in zip(sources, values, strict=True):
                    share = value / total
                    count[source] += share
                    totals[source] += share
        table = {
            word: {source: count / totals[source] for source, count in row.items()} for word, row in counts.items()
        }
    return table


def utterance_words(text: str) -> list[str]:
    """Return the words of an utterance, lower-cased."""
    return [word.lower() for word in UTTERANCE_WORD.findall(text)]


def output_words(text: str) -> list[str]:
    """Return the words and numbers of an output, lower-cased, and the null word, which explains filler."""
    return [*(word.lower() for word in OUTPUT_WORD.findall(text)), NULL_WORD]


def vote(candidates: Iterable[Candidate], execute: Callable[[str], Any] | None = None) -> tuple[Candidate, ...]:
    """Group candidates by the answers of their programs, or by their programs; order the groups by probability.

    A search returns several outputs with one answer, and a small model spreads its probability over them. Within a
    group the best score comes first; candidates without a program or an answer come last.
    """
    groups: dict[str, list[Candidate]] = defaultdict(list)
    failing: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: -c.score):
        voted = candidate.program if execute is None else answer_of(candidate.program, execute)
        (failing if voted is None else groups[voted]).append(candidate)
    ordered = sorted(groups.values(), key=weight, reverse=True)
    return tuple(candidate for group in [*ordered, failing] for candidate in group)


def answer_of(program: str | None, execute: Callable[[str], Any]) -> str | None:
    """Return the answer of a program as text; None if it fails."""
    if program is None:
        return None
    try:
        return answer_text(execute(program))
    except ExecutionError:
        return None


def weight(group: list[Candidate]) -> float:
    """Return the sum of the exponentiated scores of candidates with one vote."""
    return sum(math.exp(candidate.score) for candidate in group)
