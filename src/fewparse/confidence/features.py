"""The features of a parse from which its confidence is computed.

A feature that cannot be known is absent, not zero: a server may not report log-probabilities, a beam search has no
samples, a domain may have no executor.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from fewparse.confidence.readings import Reading
from fewparse.domains.domain import Domain
from fewparse.events import Completed, Event, Sampled, Spelled
from fewparse.example import Candidate, Example, Target
from fewparse.rerank import Alignment, alignment_of, utterance_words

Features = Mapping[str, float]
VERSION = 1
"""Changed whenever a feature is computed in another way: calibrations of other versions are not used."""
DESCRIPTIONS = {
    "logprob": "log-probability of the output",
    "least_token": "log-probability of its least likely token",
    "score": "its score: length-normalised log-probability and reranking",
    "alone": "whether all candidates mean the same",
    "margin": "its score minus that of the best candidate with another meaning, at most 5",
    "mass": "share of the candidates' probability that has its meaning",
    "alignment": "mean log-probability of the utterance's words, given the output",
    "worst_word": "that of the word which the output explains least",
    "similarity": "cosine similarity (tf-idf) to the most similar utterance of the examples",
    "unseen": "share of words that are neither in the examples' utterances nor in the output",
    "cut": "share of the model's samples that the constraint cut or rejected",
    "completed": "whether the output reached the length limit and was completed",
    "fails": "whether the program fails to execute",
    "empty": "whether its answer is empty",
}
ANSWER_FEATURES = ("fails", "empty")
MAX_MARGIN = 5.0
NUMBER = re.compile(r"\d")


class FeatureExtractor:
    """Computes the features of parses of a domain for a target."""

    def __init__(self, domain: Domain, target: Target) -> None:
        self._examples = domain.examples
        self._target = target

    def features(
        self,
        utterance: str,
        candidates: Sequence[Candidate],
        readings: Sequence[Reading],
        trace: Sequence[Event],
        without: Sequence[Example] = (),
    ) -> Features:
        """Return the features of the best candidate by name; there is at least one.

        `readings` are the candidates grouped by meaning, the best one first. Examples in `without` are not used.
        """
        best = candidates[0]
        known = best.logprob is not None and not any(isinstance(event, Spelled) for event in trace)
        found = {**meaning_features(readings), **search_features(trace)}
        if best.logprob is not None:
            found["score"] = best.score
        if known:
            assert best.logprob is not None
            assert best.least_logprob is not None
            found |= {"logprob": best.logprob, "least_token": best.least_logprob}
        return found | answer_features(readings[0]) | self._text_features(utterance, best.text, without)

    def _text_features(self, utterance: str, output: str, without: Sequence[Example]) -> dict[str, float]:
        """Return the features that compare the utterance with the output and with the examples."""
        reference = self._reference
        if without:
            excluded = {example.key for example in without}
            reference = Reference([e for e in self._examples if e.key not in excluded], self._target)
        words = utterance_words(utterance)
        if not reference.utterances or not words:
            return {}
        scores = reference.alignment.word_scores(utterance, output)
        copied = set(utterance_words(output))
        unseen = [w for w in words if w not in reference.frequencies and w not in copied and not NUMBER.search(w)]
        return {
            "alignment": sum(scores) / len(scores),
            "worst_word": min(scores),
            "similarity": reference.similarity(words),
            "unseen": len(unseen) / len(words),
        }

    @cached_property
    def _reference(self) -> "Reference":
        return Reference(self._examples, self._target)


class Reference:
    """The examples that utterances are compared with: word alignment and inverse document frequencies."""

    def __init__(self, examples: Sequence[Example], target: Target) -> None:
        self.utterances = [Counter(utterance_words(example.utterance)) for example in examples]
        self.frequencies = Counter(word for counts in self.utterances for word in counts)
        self._pairs = tuple((example.utterance, example.output(target)) for example in examples)
        self._index: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for i, counts in enumerate(self.utterances):
            for word, weight in self._weights(counts).items():
                self._index[word].append((i, weight))

    @cached_property
    def alignment(self) -> Alignment:
        """The word alignment of utterances and outputs."""
        return alignment_of(self._pairs)

    def similarity(self, words: Sequence[str]) -> float:
        """Return the highest cosine similarity of the words to those of an utterance."""
        totals: dict[int, float] = defaultdict(float)
        for word, weight in self._weights(Counter(words)).items():
            for i, other in self._index.get(word, ()):
                totals[i] += weight * other
        return max(totals.values(), default=0.0)

    def _weights(self, counts: Mapping[str, int]) -> dict[str, float]:
        """Return the weights of words, normalised to length one."""
        total = len(self.utterances) + 1
        raw = {word: n * math.log(total / (1 + self.frequencies[word]) + 1) for word, n in counts.items()}
        norm = math.sqrt(sum(weight * weight for weight in raw.values()))
        return {word: weight / norm for word, weight in raw.items()} if norm else {}


def meaning_features(readings: Sequence[Reading]) -> dict[str, float]:
    """Return how far the best reading is ahead of the others."""
    best = readings[0]
    total = sum(reading.weight for reading in readings)
    margin = MAX_MARGIN if len(readings) == 1 else best.score - max(other.score for other in readings[1:])
    return {
        "alone": float(len(readings) == 1),
        "margin": max(-MAX_MARGIN, min(MAX_MARGIN, margin)),
        "mass": best.weight / total if total > 0 else 1.0,
    }


def search_features(trace: Sequence[Event]) -> dict[str, float]:
    """Return how much the constraint had to change what the model wanted to write."""
    outcomes = [event.outcome for event in trace if isinstance(event, Sampled)]
    found = {"completed": float(any(isinstance(event, Completed) for event in trace))}
    if outcomes:
        found["cut"] = sum(outcome in ("cut", "rejected") for outcome in outcomes) / len(outcomes)
    return found


def answer_features(reading: Reading) -> dict[str, float]:
    """Return whether the program fails, or has an empty answer; nothing if it was not executed."""
    if reading.outcome is None:
        return {}
    return {"fails": float(reading.outcome.failed), "empty": float(reading.outcome.is_empty)}
