"""More lessons from the same examples: names of one kind take each other's place in utterance and output."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fewparse.example import Example

WORD = re.compile(r"[A-Za-z]+")


class Names:
    """Examples with other names, where the grammar says which words are of one kind and admits the result."""

    def __init__(self, kinds: Mapping[str, Sequence[str]], admits: Callable[[Example], bool]) -> None:
        self._kinds = {word.lower(): words for words in kinds.values() for word in words}
        self._admits = admits

    def vary(self, example: Example, random: np.random.Generator) -> Example:
        """The example with other names, or itself where there are none, or none that fit."""
        outputs = {word.lower() for word in WORD.findall(f"{example.program} {example.canonical}")}
        names = sorted({word.lower() for word in WORD.findall(example.utterance)} & outputs & set(self._kinds))
        others: dict[str, str] = {}
        for name in names:
            free = [
                word
                for word in self._kinds[name]
                if word.lower() not in names and word not in others.values() and word.lower() not in outputs
            ]
            if free:
                others[name] = free[random.integers(len(free))]
        if not others:
            return example
        varied = Example(
            replaced(example.utterance, others),
            replaced(example.program, others),
            example.canonical and replaced(example.canonical, others),
            example.context,
        )
        return varied if self._admits(varied) else example


def replaced(text: str, others: Mapping[str, str]) -> str:
    """A text with other words; one that was written small stays small."""

    def other(match: re.Match[str]) -> str:
        word = match.group()
        new = others.get(word.lower(), word)
        return new.lower() if word.islower() and text.islower() else new

    return WORD.sub(other, text)
