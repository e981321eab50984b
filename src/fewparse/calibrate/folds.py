"""Adapters tuned on folds: each parses the examples that it has not learned."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fewparse.domains.domain import Domain
from fewparse.errors import CalibrationError, CorruptModel, TuningError
from fewparse.example import Example, Target
from fewparse.files import exists
from fewparse.lm.adapter import Adapter, Provenance, read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.model import LanguageModel
from fewparse.tune.config import TuneConfig

Report = Callable[[str], None]
INSTALL = "pip install torch==2.13.0 'fewparse[tune]'"


@dataclass(frozen=True)
class Fold:
    """A part of the examples, and the domain with all others as its examples."""

    number: int
    items: tuple[Example, ...]
    domain: Domain


def folds_of(domain: Domain, count: int, seed: int = 0) -> list[Fold]:
    """Return the examples of a domain in this many parts at random."""
    examples = domain.examples
    order = np.random.default_rng(seed).permutation(len(examples))
    folds = []
    for number in range(count):
        held_out = [int(i) for i in order[number::count]]
        excluded = set(held_out)
        rest = tuple(example for i, example in enumerate(examples) if i not in excluded)
        items = tuple(examples[i] for i in held_out)
        folds.append(Fold(number, items, replace(domain, examples=rest)))
    return folds


def config_of(adapter: Adapter, epochs: int | None) -> TuneConfig:
    """Return how an adapter was tuned, with its number of epochs or another one, and nothing held out."""
    if adapter.provenance is None:
        raise CalibrationError(
            f"the adapter {adapter.path} was not tuned by fewparse: adapters of folds cannot be tuned like it",
            "Calibrate with an adapter of `fewparse tune`, or without one: --adapter none",
        )
    config = dict(adapter.provenance.config)
    layers = config.pop("layers", None)
    assert isinstance(layers, list)
    fixed = {"held_out": 0.0, "epochs": epochs or adapter.provenance.epochs}
    return TuneConfig(**{**config, **fixed, "layers": tuple(layers)})  # type: ignore[arg-type]


def tuned_adapter(
    fold: Fold, target: Target, model: LanguageModel, config: TuneConfig, folder: Path, report: Report
) -> Adapter:
    """Return the adapter of a fold: from the folder if it was tuned before; an interrupted run is resumed."""
    path = folder / f"{fold.domain.name.replace('/', '-')}-{fold_key(fold, target, config)}.gguf"
    if exists(path):
        try:
            return read_adapter(path)
        except CorruptModel:
            path.unlink()
    if not isinstance(model, EmbeddedModel):
        raise CalibrationError(f"{model.name} cannot be tuned, so its adapters cannot be calibrated by folds")
    try:
        from fewparse.tune.tuning import Progress, Tuning
    except ImportError as error:
        raise TuningError(f"adapters of folds need the packages of the extra `tune` ({error})", INSTALL) from None

    def show(progress: Progress) -> None:
        report(f"fold {fold.number + 1}: epoch {progress.epoch} of {progress.epochs}, loss {progress.loss:.2f}")

    folder.mkdir(parents=True, exist_ok=True)
    return Tuning(fold.domain, target, model, config, path, show).run()


def fold_key(fold: Fold, target: Target, config: TuneConfig) -> str:
    """Return a hash of all that the adapter of a fold depends on besides the model."""
    content = [fold.domain.data_sha256(target), target, config.as_dict()]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def has_learned(provenance: Provenance | None, domain: Domain, target: Target) -> bool:
    """Return whether an adapter may have learned the examples beyond the pool."""
    return provenance is None or provenance.data_sha256 != domain.data_sha256(target)


def limited(folds: Sequence[Fold], limit: int | None) -> list[Fold]:
    """Return the folds with at most this many items in all; folds that are not needed are left out."""
    left = sum(len(fold.items) for fold in folds) if limit is None else limit
    kept = []
    for fold in folds:
        if left > 0:
            kept.append(replace(fold, items=fold.items[:left]))
            left -= len(fold.items)
    return kept
