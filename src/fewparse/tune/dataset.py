"""Training data: each example as one sequence of tokens, the prompt followed by the output."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fewparse.example import Example, Target
from fewparse.lm.local import LocalModel
from fewparse.prompt import Template
from fewparse.tune.augment import Augmenter
from fewparse.tune.config import TuneConfig


class TrainingSequence(NamedTuple):
    """The tokens of a prompt and its output; the loss counts those from `output_start` on."""

    tokens: tuple[int, ...]
    output_start: int


def training_sequence(model: LocalModel, template: Template, example: Example, target: Target) -> TrainingSequence:
    """Tokenize an example as a parser does: the prompt without other examples, the output, and the stop token."""
    prompt = model.prompt_ids(template.render([], example.utterance, example.context))
    output = model.tokenize(template.with_lead(example.output(target)))
    end = model.tokenize(template.stop)[0]
    return TrainingSequence((*prompt, *(token.id for token in output), end.id), len(prompt))


class TrainingSet:
    """The examples of a tuning run; every epoch has its own order and its own augmentation."""

    def __init__(
        self,
        model: LocalModel,
        template: Template,
        examples: Sequence[Example],
        target: Target,
        augmenter: Augmenter | None = None,
    ) -> None:
        self._model, self._template, self._target = model, template, target
        self._examples = examples
        self._augmenter = augmenter
        self.sequences = tuple(map(self._sequence, examples))

    def _sequence(self, example: Example) -> TrainingSequence:
        return training_sequence(self._model, self._template, example, self._target)

    def __len__(self) -> int:
        return len(self.sequences)

    def batches(self, config: TuneConfig, epoch: int) -> Iterator[list[TrainingSequence]]:
        """Yield the batches of an epoch; from the second epoch on, a share of the examples is augmented."""
        random = np.random.default_rng((config.seed, epoch))
        sequences = list(self.sequences)
        if self._augmenter is not None and epoch > 0:
            for i, chosen in enumerate(random.random(len(sequences)) < config.augmented):
                if chosen:
                    sequences[i] = self._sequence(self._augmenter.augment(self._examples[i], random))
        order = random.permutation(len(sequences))
        for start in range(0, len(order), config.batch_size):
            yield [sequences[i] for i in order[start : start + config.batch_size]]
