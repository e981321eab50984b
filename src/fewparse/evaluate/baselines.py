"""What can be had without a language model: figures that a prompted one has to beat."""

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

KEPT = 10


class Ranking:
    """The programs of examples, in the order in which a retriever ranks these."""

    max_concurrency = None

    def __init__(self, name: str, examples: Sequence[Example], retriever: Retriever, target: Target) -> None:
        self.name = name
        self._examples = examples
        self._retriever = retriever
        self._target: Target = target

    @property
    def settings(self) -> dict[str, Any]:
        """The way to rank, and the examples that are ranked."""
        return {"name": self.name, "examples": [[e.utterance, e.output(self._target)] for e in self._examples]}

    def predict(self, item: Example, without: Sequence[Example]) -> Prediction:
        """The best programs, each once; no score but the rank."""
        hidden = {example.key for example in without}
        begin = time.perf_counter()
        ranked = (self._examples[i] for i in self._retriever.rank(item.utterance, Usage()))
        kept = first_of_each((e for e in ranked if e.key not in hidden), KEPT)
        candidates = tuple(
            Candidate(e.output(self._target), -rank, e.program, -rank) for rank, e in enumerate(kept)
        )
        return Prediction(candidates, Usage(), time.perf_counter() - begin)


class Explaining:
    """Ranks outputs by how well each explains the utterance: what reranking does without a model's candidates."""

    def __init__(self, outputs: Sequence[str], alignment: Alignment) -> None:
        self._outputs = outputs
        self._alignment = alignment

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """By alignment."""
        scores = [self._alignment.score(utterance, output) for output in self._outputs]
        return sorted(range(len(scores)), key=lambda i: -scores[i])


def baselines(domain: Domain, target: Target, model: LanguageModel, seed: int) -> Iterator[Ranking]:
    """All baselines that the domain admits; the model is only one because a retriever may ask for it."""
    taught = domain.for_target(target).examples
    utterances = [example.utterance for example in taught]
    for name in ("embedding", "bm25"):
        retriever = open_retriever(name, Pool(utterances, model, seed), domain.fold)
        yield Ranking(f"no model: nearest training utterance, {name}", taught, retriever, target)
    if not domain.constraint_kind.finite:
        return
    meanings = domain.known_outputs
    outputs = [meaning.output(target) for meaning in meanings]
    alignment = Alignment((e.utterance, e.output(target)) for e in taught)
    yield Ranking(
        "no model: output that explains the utterance best", meanings, Explaining(outputs, alignment), target
    )
    if all(meaning.canonical for meaning in meanings):
        retriever = open_retriever("embedding", Pool([str(m.canonical) for m in meanings], model, seed))
        yield Ranking("no model: most similar canonical utterance, embedding", meanings, retriever, target)


def first_of_each(examples: Iterable[Example], count: int) -> list[Example]:
    """The first example of each program, so many of them."""
    found: dict[str, Example] = {}
    for example in examples:
        if len(found) == count:
            break
        found.setdefault(example.program, example)
    return list(found.values())
