"""Tune a model to a domain: find how long to learn on a part of the examples, then learn from all of them."""

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fewparse.domains.domain import Domain
from fewparse.errors import ContextOverflow, TuningError
from fewparse.evaluate.metrics import Judge
from fewparse.evaluate.system import digests
from fewparse.example import Example, Target
from fewparse.lm.adapter import Adapter, Provenance, read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.parser import Parser
from fewparse.tune.checkpoint import Bookmark
from fewparse.tune.config import TuneConfig
from fewparse.tune.dataset import Lessons
from fewparse.tune.gguf_writer import write_adapter
from fewparse.tune.lora import Pupil
from fewparse.tune.trainer import Course
from fewparse.tune.variation import variation
from fewparse.tune.whole_file import replacing

TEMPLATE = "tuned"
UNFINISHED = ".tuning"


@dataclass(frozen=True)
class Progress:
    """Where a tuning stands: steps done and, at most, in all; the loss of the last batch; the last trial.

    A trial is how many of the held-out examples were parsed right after an epoch.
    """

    refitting: bool
    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    trial: int | None
    held_out: int


Report = Callable[[Progress], None]


class Tuning:
    """The work on one adapter. Where `run` is broken off, the next one goes on after the last epoch."""

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
        apart = config.held_out_of(len(examples))
        self._variation = variation(self._domain)
        self._held_out = [examples[i] for i in order[:apart]]
        self._fitted = self._lessons([examples[i] for i in order[apart:]])
        self._taught = self._lessons(examples)
        self._trials: list[int] = []

    @property
    def epochs(self) -> int:
        """How long to learn: all epochs where nothing is held out, else as long as the trials say."""
        return best_epochs(self._trials, len(self._held_out)) if self._held_out else self._config.epochs

    def run(self) -> Adapter:
        """Seek the number of epochs, learn from all examples, write the adapter."""
        bookmark = Bookmark(self._path.with_name(self._path.name + UNFINISHED), self._key)
        kept = bookmark.load() or {"trials": [], "refitting": not self._held_out, "course": None}
        bookmark.save(kept)  # a place that cannot be written is better known before than after an epoch
        self._trials = kept["trials"]
        state = kept["course"]
        if not kept["refitting"]:
            self._fit(bookmark, state)
            state = None
        self._refit(bookmark, state)
        with replacing(self._path) as scratch:
            write_adapter(scratch, self._pupil, self._provenance)
        bookmark.remove()
        return read_adapter(self._path)

    def _fit(self, bookmark: Bookmark, state: dict[str, Any] | None) -> None:
        """Learn from a part of the examples until the others get no better."""
        course = Course(self._pupil, self._fitted, self._config.epochs, self._config, state)
        while course.done < course.epochs and not self._out_of_patience:
            self._epoch(course, refitting=False)
            self._trials.append(self._right())
            bookmark.save({"trials": self._trials, "refitting": False, "course": course.state()})

    def _refit(self, bookmark: Bookmark, state: dict[str, Any] | None) -> None:
        """Learn from all examples, as long as was best."""
        course = Course(self._pupil, self._taught, self.epochs, self._config, state)
        while course.done < course.epochs:
            self._epoch(course, refitting=True)
            bookmark.save({"trials": self._trials, "refitting": True, "course": course.state()})

    @property
    def _out_of_patience(self) -> bool:
        return len(self._trials) - self.epochs >= self._config.patience

    def _epoch(self, course: Course, refitting: bool) -> None:
        """An epoch of a course, with the news of each step."""
        before = len(self._trials) * math.ceil(len(self._fitted) / self._config.batch) if refitting else 0
        later = 0 if refitting else course.epochs * math.ceil(len(self._taught) / self._config.batch)
        trial = self._trials[-1] if self._trials else None

        def after_step(step: int, loss: float) -> None:
            if not math.isfinite(loss):
                raise TuningError(f"the loss has become {loss}", "Learn more slowly: halve --rate.")
            epoch, total = course.done + 1, before + course.steps + later
            apart = len(self._held_out)
            self._report(Progress(refitting, epoch, course.epochs, before + step, total, loss, trial, apart))

        course.epoch(after_step)

    def _right(self) -> int:
        """How many of the held-out examples are parsed right, greedily and under the constraint."""
        with tempfile.TemporaryDirectory(prefix="fewparse-") as scratch:
            path = Path(scratch) / "trial.gguf"
            with replacing(path) as part:
                write_adapter(part, self._pupil, self._provenance)
            parser = Parser.from_domain(
                self._domain,
                self._model,
                target=self._target,
                adapter=path,
                decoder="greedy",
                rerank=0.0,
                vote=False,
            )
            judge = Judge(self._domain)
            return sum(
                judge.is_correct(parser.parse(item.utterance, item.context).program, item.program)
                for item in self._held_out
            )

    def _lessons(self, examples: Sequence[Example]) -> Lessons:
        template = self._domain.template(TEMPLATE)
        made = Lessons(self._model, template, examples, self._target, self._variation)
        longest = max(len(lesson.tokens) for lesson in made.plain)
        if longest > self._model.context_length:
            raise ContextOverflow(longest, self._model.context_length)
        return made

    @cached_property
    def _pupil(self) -> Pupil:
        return Pupil(self._model.path, self._config.rank, self._config.scale)

    @property
    def _key(self) -> str:
        """What identifies the work: whoever changes anything begins anew."""
        files = digests(self._domain.folder)
        said = [self._model.sha256, self._config_said, self._taught.plain, files, version("fewparse")]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    @property
    def _config_said(self) -> dict[str, float | int | list[str]]:
        return asdict(self._config)

    @property
    def _provenance(self) -> Provenance:
        return Provenance(
            domain=self._domain.name,
            target=self._target,
            prompt=TEMPLATE,
            base=self._model.name,
            base_sha256=self._model.sha256,
            data_sha256=self._domain.data_sha256(self._target),
            examples=len(self._taught),
            epochs=self.epochs,
            held_out=len(self._held_out),
            held_out_correct=self._trials[self.epochs - 1] if self._trials else 0,
            config=self._config_said,
            fewparse=version("fewparse"),
        )


def best_epochs(trials: Sequence[int], items: int) -> int:
    """The last epoch that is not worse than the best one by more than chance.

    Models go on to gain right answers long after the loss on what they have not seen is at its lowest, and a few
    held-out items cannot tell neighbours apart: shorter is only better where the loss of answers is plain.
    """
    most = max(trials, default=0)
    chance = math.sqrt(most * (items - most) / items)
    return max((epoch for epoch, trial in enumerate(trials, 1) if trial >= most - chance), default=0)
