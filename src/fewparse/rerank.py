"""Choose among finished outputs by how well each explains the utterance: a noisy channel.

A small language model knows what programs look like and forgets half of what was asked. The other direction is
cheap: IBM Model 1 learns from the domain's own examples which words of an utterance go with which words of a
program, in a fraction of a second and without a network. A candidate that leaves words of the utterance
unexplained loses.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fewparse.errors import ExecutionError
from fewparse.example import Candidate, answer_text

UTTERANCE_WORD = re.compile(r"\w+(?:[:.]\w+)*|'\w+")
OUTPUT_WORD = re.compile(r"\w+(?:[-:.]\w+)*")
NOTHING = ""
UNSEEN = 0.01
ITERATIONS = 6


class Alignment:
    """p(utterance | output) by IBM Model 1, estimated from pairs."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        taught = [(utterance_words(u), output_words(o)) for u, o in pairs]
        self._vocabulary = len({word for said, _ in taught for word in said}) + 1
        self._table = estimate(taught)

    def score(self, utterance: str, output: str) -> float:
        """The mean log-probability of the words of an utterance, given an output."""
        meant = output_words(output)
        said = utterance_words(utterance)
        total = 0.0
        for word in said:
            explained = self._table.get(word, {})
            share = sum(explained.get(source, 0.0) for source in meant) / len(meant)
            total += math.log((1 - UNSEEN) * share + UNSEEN / self._vocabulary)
        return total / max(1, len(said))


def estimate(pairs: Sequence[tuple[list[str], list[str]]]) -> dict[str, dict[str, float]]:
    """Expectation maximisation: table[word][source] = p(word | source)."""
    table: dict[str, dict[str, float]] = defaultdict(dict)
    for said, meant in pairs:
        for word in said:
            for source in meant:
                table[word][source] = 1.0
    for _ in range(ITERATIONS):
        counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        totals: dict[str, float] = defaultdict(float)
        for said, meant in pairs:
            for word in said:
                row = table[word]
                whole = sum(row[source] for source in meant)
                for source in meant:
                    share = row[source] / whole
                    counts[word][source] += share
                    totals[source] += share
        table = {
            word: {source: count / totals[source] for source, count in row.items()} for word, row in counts.items()
        }
    return table


def utterance_words(text: str) -> list[str]:
    """The words of an utterance, lower-cased."""
    return [word.lower() for word in UTTERANCE_WORD.findall(text)]


def output_words(text: str) -> list[str]:
    """The words and numbers of an output, lower-cased, and the empty word that explains filler."""
    return [*(word.lower() for word in OUTPUT_WORD.findall(text)), NOTHING]


def vote(candidates: Iterable[Candidate], execute: Callable[[str], Any]) -> tuple[Candidate, ...]:
    """The candidates, answer by answer: the weightiest answer first, and for one answer the best score."""
    by_answer: dict[str, list[Candidate]] = defaultdict(list)
    failing: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: -c.score):
        answer = answer_of(candidate.program, execute)
        (failing if answer is None else by_answer[answer]).append(candidate)
    groups = sorted(by_answer.values(), key=weight, reverse=True)
    return tuple(candidate for group in [*groups, failing] for candidate in group)


def answer_of(program: str | None, execute: Callable[[str], Any]) -> str | None:
    """What a program answers, as text; None where it fails."""
    if program is None:
        return None
    try:
        return answer_text(execute(program))
    except ExecutionError:
        return None


def weight(group: list[Candidate]) -> float:
    """The belief in an answer: the sum of what its candidates' scores stand for."""
    return sum(math.exp(candidate.score) for candidate in group)
