"""What a model learns from: each example as one sequence of tokens, its output behind the prompt."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fewparse.example import Example, Target
from fewparse.lm.local import LocalModel
from fewparse.prompt import Template
from fewparse.tune.variation import Variation

VARIED = 0.5


class Lesson(NamedTuple):
    """A sequence of tokens; those from `start` on are to be learned."""

    tokens: tuple[int, ...]
    start: int


def lesson(model: LocalModel, template: Template, example: Example, target: Target) -> Lesson:
    """An example as a parser would meet it: the prompt without other examples, the output, and its end."""
    prompt = model.prompt_ids(template.render([], example.utterance, example.context))
    said = model.tokenize(template.lead + example.output(target))
    end = model.tokenize(template.stop)[0]
    return Lesson((*prompt, *(token.id for token in said), end.id), len(prompt))


class Lessons:
    """The lessons of some examples: every epoch has all of them, in an order and a variation of its own."""

    def __init__(
        self,
        model: LocalModel,
        template: Template,
        examples: Sequence[Example],
        target: Target,
        variation: Variation | None = None,
    ) -> None:
        self._model, self._template, self._target = model, template, target
        self._examples = examples
        self._variation = variation
        self.plain = tuple(map(self._make, examples))

    def _make(self, example: Example) -> Lesson:
        return lesson(self._model, self._template, example, self._target)

    def __len__(self) -> int:
        return len(self.plain)

    def batches(self, size: int, seed: int, epoch: int) -> Iterator[list[Lesson]]:
        """The lessons of an epoch, so many at a time; half of them varied, from the second epoch on."""
        random = np.random.default_rng((seed, epoch))
        taught = list(self.plain)
        if self._variation is not None and epoch > 0:
            for i, chosen in enumerate(random.random(len(taught)) < VARIED):
                if chosen:
                    taught[i] = self._make(self._variation.vary(self._examples[i], random))
        order = random.permutation(len(taught))
        for at in range(0, len(order), size):
            yield [taught[i] for i in order[at : at + size]]
