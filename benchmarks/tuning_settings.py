"""Compare tuning settings: one thing changed at a time, evaluated on training examples that are not tuned on.

Run: python benchmarks/tuning_settings.py DOMAIN TARGET [CHANGE ...], for example `overnight/calendar canonical
"epochs 12" "canonical pairs"`. If all training examples are tuned on, the items are a development set (smcalflow)
or 200 examples that are held out (calendar).
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
from fewparse.tune.augment import augmenter_for
from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import TrainingSequence, TrainingSet
from fewparse.tune.gguf_writer import write_adapter
from fewparse.tune.lora import LoraModel
from fewparse.tune.trainer import Trainer
from measure import RESULTS, write

ITEMS = 200
DEVELOPMENT = "dev_100"
WEIGHTS = (0.0, 1.6, 3.2, 6.0, 12.0)
TUNED = bundled_template("tuned")
OTHER = replace(TUNED, query=TUNED.query.replace("{utterance}", "{utterance} (the other way)"))
"""The prompt for the other target, if one adapter is tuned for both."""
DECAY = 0.97
SAMPLED, MAX_DEPTH = 100, 6
"""The number of random sentences of a grammar, and their depth: about as long as the outputs of examples."""

BASE = TuneConfig()


@dataclass(frozen=True)
class Change:
    """A difference from the base setting."""

    config: TuneConfig = BASE
    augmented: bool = True
    pairs: bool = False
    both: bool = False
    examples: int = 0
    average: bool = False
    short_first: bool = False


CHANGES = {
    "base": Change(),
    "epochs 5": Change(TuneConfig(epochs=5)),
    "epochs 12": Change(TuneConfig(epochs=12)),
    "learning rate 0.0005": Change(TuneConfig(learning_rate=5e-4)),
    "learning rate 0.002": Change(TuneConfig(learning_rate=2e-3)),
    "rank 4": Change(TuneConfig(rank=4)),
    "rank 16": Change(TuneConfig(rank=16)),
    "batch size 4": Change(TuneConfig(batch_size=4)),
    "not augmented": Change(augmented=False),
    "canonical pairs": Change(pairs=True),
    "both targets": Change(both=True),
    "2 examples in the prompt": Change(examples=2),
    "average of steps": Change(average=True),
    "short ones first": Change(short_first=True),
}


class MixedSet(TrainingSet):
    """Several training sets, all of them in every batch."""

    def __init__(self, parts: Sequence[TrainingSet]) -> None:
        self._parts = parts
        self.sequences = tuple(sequence for part in parts for sequence in part.sequences)

    def batches(self, config: TuneConfig, epoch: int) -> Iterator[list[TrainingSequence]]:
        """Yield batches in which each part has its share."""
        sizes = [max(1, round(config.batch_size * len(part) / len(self))) for part in self._parts]
        streams = [
            part.batches(replace(config, batch_size=size), epoch)
            for part, size in zip(self._parts, sizes, strict=True)
        ]
        for batches in zip_longest(*streams, fillvalue=[]):
            yield [sequence for batch in batches for sequence in batch]


class FewShotSet(TrainingSet):
    """Training sequences whose prompts have the most similar other examples."""

    def __init__(self, parser: Parser, model: EmbeddedModel, examples: Sequence[Example], target: Target) -> None:
        self._parser = parser
        super().__init__(model, TUNED, examples, target)

    def _sequence(self, example: Example) -> TrainingSequence:
        plain = super()._sequence(example)
        prompt = self._model.prompt_ids(self._parser.prompt(example.utterance, example.context, [example])[1])
        return TrainingSequence((*prompt, *plain.tokens[plain.output_start :]), len(prompt))


class ShortFirstSet(TrainingSet):
    """Training sequences ordered by length in the first epoch."""

    def batches(self, config: TuneConfig, epoch: int) -> Iterator[list[TrainingSequence]]:
        """Yield short sequences first in the first epoch, then in random order."""
        if epoch:
            yield from super().batches(config, epoch)
            return
        ordered = sorted(self.sequences, key=lambda sequence: len(sequence.tokens))
        for start in range(0, len(ordered), config.batch_size):
            yield ordered[start : start + config.batch_size]


class WeightAverage:
    """An exponential moving average of the LoRA weights."""

    def __init__(self, model: LoraModel) -> None:
        self._model = model
        self._mean = model.state()

    def after_step(self, step: int, loss: float) -> None:
        """Update the average with the current weights, with a larger share in the first steps."""
        for mean, weights in zip(self._mean, self._model.parameters(), strict=True):
            mean.lerp_(weights.detach(), max(1 - DECAY, 1 / (step + 1)))

    def apply(self) -> None:
        """Load the average into the model."""
        self._model.restore(self._mean)


def main(name: str, target: Target, chosen: Sequence[str]) -> None:
    """Write one row per change."""
    domain, items = split(load_domain(name).for_target(target))
    model = open_model()
    assert isinstance(model, EmbeddedModel)
    file = f"tuning-settings-{name.replace('/', '-')}-{target}"
    path = RESULTS / f"{file}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    for change in chosen:
        rows = [row for row in rows if row["changed"] != change]
        rows.append({"changed": change, **figures(CHANGES[change], domain, target, items, model)})
        write(file, rows)


def split(domain: Domain) -> tuple[Domain, list[Example]]:
    """Return the domain, and items that it is not tuned on: spare examples, a development set, or held out."""
    if domain.spare_examples:
        order = np.random.default_rng(7).permutation(len(domain.spare_examples))
        return domain, [domain.spare_examples[i] for i in order[:ITEMS]]
    if DEVELOPMENT in (files := split_files(domain)):
        return domain, list(read_examples(files[DEVELOPMENT]))
    order = np.random.default_rng(5).permutation(len(domain.examples))
    examples = tuple(domain.examples[i] for i in sorted(order[ITEMS:]))
    return replace(domain, examples=examples), [domain.examples[i] for i in order[:ITEMS]]


def figures(
    change: Change, domain: Domain, target: Target, items: Sequence[Example], model: EmbeddedModel
) -> dict[str, Any]:
    """Train for all epochs, then parse the items."""
    start = time.perf_counter()
    lora_model = LoraModel(model.path, change.config)
    training = training_set(change, domain, target, model)
    trainer = Trainer(lora_model, training, change.config.epochs, change.config)
    average = WeightAverage(lora_model) if change.average else None
    losses: list[float] = []

    def after_step(step: int, loss: float) -> None:
        losses.append(loss)
        if average is not None:
            average.after_step(step, loss)

    while trainer.epochs_done < trainer.epochs:
        losses.clear()
        trainer.run_epoch(after_step)
    if average is not None:
        average.apply()
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adapter.gguf"
        write_adapter(path, lora_model, provenance(domain, target, model))
        candidates = parse(domain, target, model, items, path, change.examples)
    return {
        "loss of the last epoch": round(sum(losses) / len(losses), 3),
        "seconds": round(seconds),
        "items": len(items),
        **{f"accuracy, rerank {weight}": accuracy(candidates, domain, target, weight) for weight in WEIGHTS},
    }


def training_set(change: Change, domain: Domain, target: Target, model: EmbeddedModel) -> TrainingSet:
    """Return the training set of a change."""
    augmenter = augmenter_for(domain) if change.augmented else None
    if change.examples:
        parser = Parser.from_domain(
            domain, model, target=target, adapter="none", prompt="tuned", examples=change.examples
        )
        return FewShotSet(parser, model, domain.examples, target)
    if change.short_first:
        return ShortFirstSet(model, TUNED, domain.examples, target, augmenter)
    parts = [TrainingSet(model, TUNED, domain.examples, target, augmenter)]
    if change.pairs:
        parts.append(TrainingSet(model, TUNED, canonical_pairs(domain), target))
    if change.both:
        other: Target = "program" if target == "canonical" else "canonical"
        parts.append(TrainingSet(model, OTHER, domain.for_target(other).examples, other, augmenter))
    return MixedSet(parts) if len(parts) > 1 else parts[0]


def canonical_pairs(domain: Domain) -> list[Example]:
    """Return canonical utterances as examples: a sample of the grammar, or all of a finite set of outputs."""
    if domain.constraint_kind.synchronous:
        assert isinstance(domain.language, SynchronousGrammar)
        sampled = sample_pairs(domain.language, SAMPLED, seed=0, depth=MAX_DEPTH)
        return [Example(pair.utterance, pair.program, pair.utterance) for pair in sampled]
    examples = {e.canonical: replace(e, utterance=e.canonical or "", context="") for e in domain.known_outputs}
    return list(examples.values())


def provenance(domain: Domain, target: Target, model: EmbeddedModel) -> Provenance:
    """Return the fields of a provenance that a parser needs."""
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


Candidates = list[tuple[Example, list[tuple[str, float, bool]]]]


def parse(
    domain: Domain, target: Target, model: EmbeddedModel, items: Sequence[Example], path: Path, examples: int
) -> Candidates:
    """Return the candidates of each item: text, score and whether it is correct."""
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
        for item in items
    ]


def accuracy(found: Candidates, domain: Domain, target: Target, weight: float) -> float:
    """Return the share of correct items if candidates are reranked with a weight."""
    alignment = Alignment((example.utterance, example.output(target)) for example in domain.examples)

    def score(item: Example) -> Callable[[tuple[str, float, bool]], float]:
        return lambda candidate: candidate[1] + weight * alignment.score(item.utterance, candidate[0])

    best = [max(candidates, key=score(item)) for item, candidates in found if candidates]
    return round(sum(candidate[2] for candidate in best) / len(found), 3)


if __name__ == "__main__":
    torch.manual_seed(0)
    main(sys.argv[1], "program" if sys.argv[2] == "program" else "canonical", sys.argv[3:] or list(CHANGES))
