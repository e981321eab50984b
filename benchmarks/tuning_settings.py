"""What makes a better pupil: one thing changed at a time, judged by training examples that are not taught.

Run: python benchmarks/tuning_settings.py DOMAIN TARGET [CHANGE ...], for example `overnight/calendar canonical
"epochs 12" "canonical pairs"`. Where all training examples are taught, a development set judges (smcalflow), or
200 of them are held out (calendar).
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fewparse import Domain, Example, Parser, load_domain, open_model
from fewparse.domains.examples import read_examples
from fewparse.evaluate.metrics import Judge
from fewparse.evaluate.run import split_files
from fewparse.example import Target
from fewparse.grammar.analysis.sampling import sample_pairs
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.lm.adapter import Provenance
from fewparse.lm.embedded import EmbeddedModel
from fewparse.prompt import bundled_template
from fewparse.rerank import Alignment
from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import Lesson, Lessons
from fewparse.tune.gguf_writer import write_adapter
from fewparse.tune.lora import Pupil
from fewparse.tune.trainer import Course
from fewparse.tune.variation import variation
from measure import RESULTS, write

JUDGED = 200
DEVELOPMENT = "dev_100"
WEIGHTS = (0.0, 1.6, 3.2, 6.0, 12.0)
TUNED = bundled_template("tuned")
OTHER = replace(TUNED, query=TUNED.query.replace("{utterance}", "{utterance} (the other way)"))
"""How the other target is asked for, where one adapter learns both."""
MEMORY = 0.97
SAMPLED, SHALLOW = 100, 6
"""So many random sentences of a grammar, and how deep: about as long as those of examples."""

BASE = TuneConfig()


@dataclass(frozen=True)
class Change:
    """What is different from the base."""

    config: TuneConfig = BASE
    varied: bool = True
    pairs: bool = False
    both: bool = False
    examples: int = 0
    average: bool = False
    short_first: bool = False


CHANGES = {
    "base": Change(),
    "epochs 5": Change(TuneConfig(epochs=5)),
    "epochs 12": Change(TuneConfig(epochs=12)),
    "rate 0.0005": Change(TuneConfig(rate=5e-4)),
    "rate 0.002": Change(TuneConfig(rate=2e-3)),
    "rank 4": Change(TuneConfig(rank=4)),
    "rank 16": Change(TuneConfig(rank=16)),
    "batch 4": Change(TuneConfig(batch=4)),
    "not varied": Change(varied=False),
    "canonical pairs": Change(pairs=True),
    "both targets": Change(both=True),
    "2 examples in the prompt": Change(examples=2),
    "average of steps": Change(average=True),
    "short ones first": Change(short_first=True),
}


class Mixed(Lessons):
    """Lessons of several kinds in every epoch."""

    def __init__(self, kinds: Sequence[Lessons]) -> None:
        self._kinds = kinds
        self.plain = tuple(lesson for kind in kinds for lesson in kind.plain)

    def batches(self, size: int, seed: int, epoch: int) -> Iterator[list[Lesson]]:
        """As many of each kind in a batch as its share."""
        share = [max(1, round(size * len(kind) / len(self))) for kind in self._kinds]
        streams = [kind.batches(part, seed, epoch) for kind, part in zip(self._kinds, share, strict=True)]
        for together in zip_longest(*streams, fillvalue=[]):
            yield [lesson for part in together for lesson in part]


class Prompted(Lessons):
    """Lessons whose prompt has the most similar other examples."""

    def __init__(self, parser: Parser, model: EmbeddedModel, examples: Sequence[Example], target: Target) -> None:
        self._parser = parser
        super().__init__(model, TUNED, examples, target)

    def _make(self, example: Example) -> Lesson:
        plain = super()._make(example)
        prompt = self._model.prompt_ids(self._parser.prompt(example.utterance, example.context, [example])[1])
        return Lesson((*prompt, *plain.tokens[plain.start :]), len(prompt))


class ShortFirst(Lessons):
    """Lessons in the order of their length, in the first epoch."""

    def batches(self, size: int, seed: int, epoch: int) -> Iterator[list[Lesson]]:
        """Short ones first, then as ever."""
        if epoch:
            yield from super().batches(size, seed, epoch)
            return
        ordered = sorted(self.plain, key=lambda lesson: len(lesson.tokens))
        for at in range(0, len(ordered), size):
            yield ordered[at : at + size]


class Average:
    """A running mean of what a pupil knows."""

    def __init__(self, pupil: Pupil) -> None:
        self._pupil = pupil
        self._mean = pupil.state()

    def after_step(self, step: int, loss: float) -> None:
        """Move towards what is known now; at first quickly."""
        for mean, known in zip(self._mean, self._pupil.parameters(), strict=True):
            mean.lerp_(known.detach(), max(1 - MEMORY, 1 / (step + 1)))

    def take(self) -> None:
        """Let the pupil know the mean."""
        self._pupil.restore(self._mean)


def main(name: str, target: Target, chosen: Sequence[str]) -> None:
    """One row a change."""
    domain, judged = divided(load_domain(name).for_target(target))
    model = open_model()
    assert isinstance(model, EmbeddedModel)
    file = f"tuning-settings-{name.replace('/', '-')}-{target}"
    kept = RESULTS / f"{file}.json"
    rows: list[dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else []
    for change in chosen:
        rows = [row for row in rows if row["changed"] != change]
        rows.append({"changed": change, **figures(CHANGES[change], domain, target, judged, model)})
        write(file, rows)


def divided(domain: Domain) -> tuple[Domain, list[Example]]:
    """The domain, and examples that it does not teach: to spare, for development, or held out."""
    if domain.spare_examples:
        order = np.random.default_rng(7).permutation(len(domain.spare_examples))
        return domain, [domain.spare_examples[i] for i in order[:JUDGED]]
    if DEVELOPMENT in (files := split_files(domain)):
        return domain, list(read_examples(files[DEVELOPMENT]))
    order = np.random.default_rng(5).permutation(len(domain.examples))
    taught = tuple(domain.examples[i] for i in sorted(order[JUDGED:]))
    return replace(domain, examples=taught), [domain.examples[i] for i in order[:JUDGED]]


def figures(
    change: Change, domain: Domain, target: Target, judged: Sequence[Example], model: EmbeddedModel
) -> dict[str, Any]:
    """Learn for all epochs, then parse what was not taught."""
    begin = time.perf_counter()
    pupil = Pupil(model.path, change.config.rank, change.config.scale)
    course = Course(pupil, lessons(change, domain, target, model), change.config.epochs, change.config)
    average = Average(pupil) if change.average else None
    losses: list[float] = []

    def after_step(step: int, loss: float) -> None:
        losses.append(loss)
        if average is not None:
            average.after_step(step, loss)

    while course.done < course.epochs:
        losses.clear()
        course.epoch(after_step)
    if average is not None:
        average.take()
    learned = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adapter.gguf"
        write_adapter(path, pupil, provenance(domain, target, model))
        found = parsed(domain, target, model, judged, path, change.examples)
    return {
        "loss of the last epoch": round(sum(losses) / len(losses), 3),
        "seconds": round(learned),
        "items": len(judged),
        **{f"right, rerank {weight}": right(found, domain, target, weight) for weight in WEIGHTS},
    }


def lessons(change: Change, domain: Domain, target: Target, model: EmbeddedModel) -> Lessons:
    """What is learned."""
    names = variation(domain) if change.varied else None
    if change.examples:
        parser = Parser.from_domain(
            domain, model, target=target, adapter="none", prompt="tuned", examples=change.examples
        )
        return Prompted(parser, model, domain.examples, target)
    if change.short_first:
        return ShortFirst(model, TUNED, domain.examples, target, names)
    kinds = [Lessons(model, TUNED, domain.examples, target, names)]
    if change.pairs:
        kinds.append(Lessons(model, TUNED, spoken(domain), target))
    if change.both:
        other: Target = "program" if target == "canonical" else "canonical"
        kinds.append(Lessons(model, OTHER, domain.for_target(other).examples, other, names))
    return Mixed(kinds) if len(kinds) > 1 else kinds[0]


def spoken(domain: Domain) -> list[Example]:
    """Canonical utterances that stand for themselves: a sample of the grammar, or all of a closed language."""
    if domain.constraint_kind.synchronous:
        assert isinstance(domain.language, SynchronousGrammar)
        sampled = sample_pairs(domain.language, SAMPLED, seed=0, depth=SHALLOW)
        return [Example(pair.utterance, pair.program, pair.utterance) for pair in sampled]
    said = {e.canonical: replace(e, utterance=e.canonical or "", context="") for e in domain.known_outputs}
    return list(said.values())


def provenance(domain: Domain, target: Target, model: EmbeddedModel) -> Provenance:
    """Enough of it to be parsed with."""
    return Provenance(
        domain=domain.name,
        target=target,
        prompt="tuned",
        base=model.name,
        base_sha256=model.sha256,
        data_sha256="",
        examples=len(domain.examples),
        epochs=0,
        held_out=0,
        held_out_correct=0,
        config={},
        fewparse="",
    )


Found = list[tuple[Example, list[tuple[str, float, bool]]]]


def parsed(
    domain: Domain, target: Target, model: EmbeddedModel, judged: Sequence[Example], path: Path, examples: int
) -> Found:
    """The candidates of each item: text, score and whether it is right."""
    chosen: dict[str, Any] = {"target": target, "adapter": path, "examples": examples}
    parser = Parser.from_domain(domain, model, decoder="beam", width=5, rerank=0.0, **chosen)
    judge = Judge(domain)
    return [
        (
            item,
            [
                (candidate.text, candidate.score, judge.is_correct(candidate.program, item.program))
                for candidate in parser.parse(item.utterance, item.context).candidates
            ],
        )
        for item in judged
    ]


def right(found: Found, domain: Domain, target: Target, weight: float) -> float:
    """The share that is right if candidates are reranked with a weight."""
    alignment = Alignment((example.utterance, example.output(target)) for example in domain.examples)

    def merit(item: Example) -> Callable[[tuple[str, float, bool]], float]:
        return lambda candidate: candidate[1] + weight * alignment.score(item.utterance, candidate[0])

    best = [max(candidates, key=merit(item)) for item, candidates in found if candidates]
    return round(sum(candidate[2] for candidate in best) / len(found), 3)


if __name__ == "__main__":
    torch.manual_seed(0)
    main(sys.argv[1], "program" if sys.argv[2] == "program" else "canonical", sys.argv[3:] or list(CHANGES))
