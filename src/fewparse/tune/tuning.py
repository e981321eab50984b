"""Tune a model for a domain: choose the number of epochs on held-out examples, then train on all of them."""

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fewparse.domains.domain import Domain
from fewparse.errors import ContextOverflow, TuningError
from fewparse.evaluate.metrics import Judge
from fewparse.evaluate.system import file_digests
from fewparse.example import Example, Target
from fewparse.lm.adapter import Adapter, Provenance, read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.options import prepare
from fewparse.parser import Parser
from fewparse.tune.augment import augmenter_for
from fewparse.tune.checkpoint import Checkpoint, replacing
from fewparse.tune.config import TuneConfig
from fewparse.tune.curve import LearningCurve
from fewparse.tune.dataset import TrainingSet
from fewparse.tune.gguf_writer import write_adapter
from fewparse.tune.lora import LoraModel
from fewparse.tune.trainer import Trainer

TEMPLATE = "tuned"
CHECKPOINT_SUFFIX = ".tuning"


@dataclass(frozen=True)
class Progress:
    """The progress of a tuning run after a step.

    `steps` is the largest possible number of steps in both phases (fit, then refit on all examples), and `loss`
    is the loss of the last batch. `held_out_correct` is the number of held-out examples parsed correctly after the
    last epoch, out of `held_out`; None before the first evaluation.
    """

    refitting: bool
    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    held_out_correct: int | None
    held_out: int


Report = Callable[[Progress], None]


class Tuning:
    """One tuning run: `run` writes the adapter to `path`, and a picture of its learning curve beside it.

    An interrupted run resumes after its last epoch.
    """

    def __init__(
        self,
        domain: Domain,
        target: Target,
        model: EmbeddedModel,
        config: TuneConfig,
        path: Path,
        report: Report = lambda progress: None,
    ) -> None:
        config.check()
        self._domain = domain.for_target(target)
        self._target = target
        self._model = model
        self._config = config
        self._path = path
        self._report = report
        examples = self._domain.examples
        order = np.random.default_rng(config.seed).permutation(len(examples))
        held_out = config.held_out_count(len(examples))
        self._augmenter = augmenter_for(self._domain)
        self._held_out = [examples[i] for i in order[:held_out]]
        self._fit_set = self._training_set([examples[i] for i in order[held_out:]])
        self._full_set = self._training_set(examples)
        self._correct_by_epoch: list[int] = []
        self._fit_losses: list[float] = []
        self._refit_losses: list[float] = []

    @property
    def epochs(self) -> int:
        """The number of epochs to train on all examples: chosen on the held-out ones, if there are any."""
        if not self._held_out:
            return self._config.epochs
        return best_epochs(self._correct_by_epoch, len(self._held_out))

    @property
    def key(self) -> str:
        """A digest of everything the result depends on: a checkpoint with another key is ignored."""
        files = file_digests(self._domain.folder)
        sequences = self._full_set.sequences
        inputs = [self._model.sha256, self._config.as_dict(), sequences, files, version("fewparse")]
        return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()

    def run(self) -> Adapter:
        """Choose the number of epochs, train on all examples, and write the adapter."""
        checkpoint = Checkpoint(self._path.with_name(self._path.name + CHECKPOINT_SUFFIX), self.key)
        saved = checkpoint.load() or {
            "correct_by_epoch": [],
            "fit_losses": [],
            "refit_losses": [],
            "refitting": not self._held_out,
            "trainer": None,
        }
        checkpoint.save(saved)  # fails before the first epoch, not after it, if the folder is not writable
        self._correct_by_epoch = saved["correct_by_epoch"]
        self._fit_losses, self._refit_losses = saved["fit_losses"], saved["refit_losses"]
        state = saved["trainer"]
        if not saved["refitting"]:
            self._fit(checkpoint, state)
            state = None
        self._refit(checkpoint, state)
        write_adapter(self._path, self._lora_model, self._provenance)
        with replacing(self._path.with_suffix(".svg")) as picture:
            title = f"Tuning {self._domain.name}, target {self._target}"
            picture.write_text(self.curve.svg(title), encoding="utf-8")
        checkpoint.remove()
        return read_adapter(self._path)

    @property
    def curve(self) -> LearningCurve:
        """The loss of every epoch so far, and the accuracy on the held-out examples."""
        losses = tuple(self._fit_losses), tuple(self._refit_losses)
        return LearningCurve(*losses, tuple(self._correct_by_epoch), len(self._held_out), self.epochs)

    def _fit(self, checkpoint: Checkpoint, state: dict[str, Any] | None) -> None:
        """Train without the held-out examples until accuracy on these does not improve any more."""
        trainer = Trainer(self._lora_model, self._fit_set, self._config.epochs, self._config, state)
        while trainer.epochs_done < trainer.epochs and not self._patience_exhausted:
            self._run_epoch(trainer, refitting=False)
            self._correct_by_epoch.append(self._count_correct())
            self._save(checkpoint, trainer, refitting=False)

    def _refit(self, checkpoint: Checkpoint, state: dict[str, Any] | None) -> None:
        """Train on all examples for the best number of epochs."""
        trainer = Trainer(self._lora_model, self._full_set, self.epochs, self._config, state)
        while trainer.epochs_done < trainer.epochs:
            self._run_epoch(trainer, refitting=True)
            self._save(checkpoint, trainer, refitting=True)

    def _save(self, checkpoint: Checkpoint, trainer: Trainer, refitting: bool) -> None:
        checkpoint.save(
            {
                "correct_by_epoch": self._correct_by_epoch,
                "fit_losses": self._fit_losses,
                "refit_losses": self._refit_losses,
                "refitting": refitting,
                "trainer": trainer.state(),
            }
        )

    @property
    def _patience_exhausted(self) -> bool:
        return len(self._correct_by_epoch) - self.epochs >= self._config.patience

    def _run_epoch(self, trainer: Trainer, refitting: bool) -> None:
        """Train for one epoch and report every step."""
        batch_size, fit_epochs = self._config.batch_size, len(self._correct_by_epoch)
        before = fit_epochs * math.ceil(len(self._fit_set) / batch_size) if refitting else 0
        after = 0 if refitting else trainer.epochs * math.ceil(len(self._full_set) / batch_size)
        correct = self._correct_by_epoch[-1] if self._correct_by_epoch else None
        losses: list[float] = []

        def after_step(step: int, loss: float) -> None:
            losses.append(loss)
            if not math.isfinite(loss):
                raise TuningError(f"the loss is {loss}", "Use a lower learning rate: halve --learning-rate.")
            self._report(
                Progress(
                    refitting=refitting,
                    epoch=trainer.epochs_done + 1,
                    epochs=trainer.epochs,
                    step=before + step,
                    steps=before + trainer.steps + after,
                    loss=loss,
                    held_out_correct=correct,
                    held_out=len(self._held_out),
                )
            )

        trainer.run_epoch(after_step)
        (self._refit_losses if refitting else self._fit_losses).append(sum(losses) / len(losses))

    def _count_correct(self) -> int:
        """Parse the held-out examples with constrained greedy decoding; return how many are correct."""
        with tempfile.TemporaryDirectory(prefix="fewparse-") as folder:
            path = Path(folder) / "trial.gguf"
            write_adapter(path, self._lora_model, self._provenance)
            domain, options = prepare(
                self._domain,
                self._model.name,
                target=self._target,
                adapter=path,
                decoder="greedy",
                rerank=0.0,
                vote=False,
            )
            parser = Parser(domain, self._model, options)
            judge = Judge(self._domain)
            return sum(
                judge.is_correct(parser.parse(item.utterance, item.context).program, item.program)
                for item in self._held_out
            )

    def _training_set(self, examples: Sequence[Example]) -> TrainingSet:
        template = self._domain.template(TEMPLATE)
        training_set = TrainingSet(self._model, template, examples, self._target, self._augmenter)
        longest = max(len(sequence.tokens) for sequence in training_set.sequences)
        if longest > self._model.context_length:
            raise ContextOverflow(longest, self._model.context_length)
        return training_set

    @cached_property
    def _lora_model(self) -> LoraModel:
        return LoraModel(self._model.path, self._config)

    @property
    def _provenance(self) -> Provenance:
        return Provenance(
            domain=self._domain.name,
            target=self._target,
            prompt=TEMPLATE,
            base=self._model.name,
            base_sha256=self._model.sha256,
            data_sha256=self._domain.data_sha256(self._target),
            outputs_sha256=self._domain.constraint_kind.outputs_sha256(self._target),
            examples=len(self._full_set),
            epochs=self.epochs,
            held_out=len(self._held_out),
            held_out_correct=self._correct_by_epoch[self.epochs - 1] if self._correct_by_epoch else 0,
            config=self._config.as_dict(),
            fewparse=version("fewparse"),
        )


def best_epochs(correct_by_epoch: Sequence[int], items: int) -> int:
    """Return the last epoch that is at most one standard error worse than the best one; 0 if there are none.

    Accuracy still rises long after the loss on held-out examples has reached its minimum, and a few held-out items
    cannot distinguish neighbouring epochs: fewer epochs are only better if accuracy clearly falls.
    """
    best = max(correct_by_epoch, default=0)
    standard_error = math.sqrt(best * (items - best) / items)
    return max(
        (epoch for epoch, correct in enumerate(correct_by_epoch, 1) if correct >= best - standard_error), default=0
    )
