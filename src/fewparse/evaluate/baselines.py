"""Baselines without a language model, by retrieval and by word alignment."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fewparse.domains.domain import Domain
from fewparse.evaluate.system import Prediction
from fewparse.example import Candidate, Example, Target
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.rerank import Alignment
from fewparse.retrieve.retriever import Pool, Retriever, open_retriever

MAX_CANDIDATES = 10


class RetrievalBaseline:
    """A system that predicts the programs of the examples that a retriever ranks highest."""

    max_concurrency = None

    def __init__(self, name: str, examples: Sequence[Example], retriever: Retriever, target: Target) -> None:
        self.name = name
        self._examples = examples
        self._retriever = retriever
        self._target: Target = target

    @property
    def settings(self) -> dict[str, Any]:
        """The name, which identifies the retriever, and the examples."""
        return {"name": self.name, "examples": [[e.utterance, e.output(self._target)] for e in self._examples]}

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """Return the best distinct programs; a candidate's score is its negative rank."""
        excluded = {example.key for example in without}
        start = time.perf_counter()
        ranked = (self._examples[i] for i in self._retriever.rank(item.utterance, Usage()))
        best = distinct_programs((e for e in ranked if e.key not in excluded), MAX_CANDIDATES)
        candidates = tuple(
            Candidate(e.output(self._target), -rank, e.program, -rank) for rank, e in enumerate(best)
        )
        return Prediction(candidates, Usage(), time.perf_counter() - start)


class AlignmentRetriever:
    """Ranks outputs by their word alignment with the utterance, as reranking does with a model's candidates."""

    def __init__(self, outputs: Sequence[str], alignment: Alignment) -> None:
        self._outputs = outputs
        self._alignment = alignment

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Return the indices of all outputs, best first."""
        scores = [self._alignment.score(utterance, output) for output in self._outputs]
        return sorted(range(len(scores)), key=lambda i: -scores[i])


def baselines(domain: Domain, target: Target, model: LanguageModel, seed: int) -> Iterator[RetrievalBaseline]:
    """Yield all baselines that are possible for the domain; `model` is only for retrievers that need one."""
    examples = domain.for_target(target).examples
    utterances = [example.utterance for example in examples]
    for name in ("embedding", "bm25") if examples else ():
        retriever = open_retriever(name, Pool(utterances, model, seed), domain.fold)
        yield RetrievalBaseline(f"no model: nearest training utterance, {name}", examples, retriever, target)
    if not domain.constraint_kind.finite:
        return
    known = domain.known_outputs
    outputs = [example.output(target) for example in known]
    alignment = Alignment((e.utterance, e.output(target)) for e in examples)
    aligned = AlignmentRetriever(outputs, alignment)
    yield RetrievalBaseline("no model: output with the best word alignment", known, aligned, target)
    if all(example.canonical for example in known):
        retriever = open_retriever("embedding", Pool([str(example.canonical) for example in known], model, seed))
        name = "no model: most similar canonical utterance, embedding"
        yield RetrievalBaseline(name, known, retriever, target)


def distinct_programs(examples: Iterable[Example], limit: int) -> list[Example]:
    """Return the first example of each program, at most `limit` examples."""
    found: dict[str, Example] = {}
    for example in examples:
        if len(found) == limit:
            break
        found.setdefault(example.program, example)
    return list(found.values())
