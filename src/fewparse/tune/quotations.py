"""More lessons from the same examples: quoted texts of one kind take each other's place in utterance and output.

In `#(String "lunch with Ann")` the text is copied from the utterance, and in `#(DayOfWeek "FRIDAY")` a word of the
utterance is named. What stands before a quotation is its kind.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

from fewparse.example import Example

QUOTATION = re.compile(r'(\S+) "([^"]+)"')


class Quotations:
    """Examples with other quotations, as other utterances have said them, where the grammar admits the result."""

    def __init__(self, examples: Sequence[Example], admits: Callable[[Example], bool]) -> None:
        pairs = [pair for example in examples for pair in QUOTATION.findall(example.program)]
        self._copied = {kind for kind, text in pairs if not text.isupper()}
        said = sorted({pair for example in examples for pair in self._said(example)})
        self._kinds = {kind: [text for other, text in said if other == kind] for kind, _ in said}
        self._admits = admits

    def vary(self, example: Example, random: np.random.Generator) -> Example:
        """The example with other quotations, or itself where the utterance says none, or none that fit."""
        varied = example
        for kind, text in self._said(example):
            others = [o for o in self._kinds.get(kind, ()) if not whole(o).search(varied.utterance)]
            if others:
                varied = swapped(varied, kind, text, others[random.integers(len(others))])
        return varied if varied is not example and self._admits(varied) else example

    def _said(self, example: Example) -> list[tuple[str, str]]:
        """The quotations that all of an example says: a copy letter by letter, a name in letters of any size."""
        pairs = list(dict.fromkeys(QUOTATION.findall(example.program)))

        def says(kind: str, text: str) -> bool:
            said = whole(text).findall(example.utterance)
            spoken = example.canonical is None or whole(text).search(example.canonical) is not None
            alone = not any(text != other and (text in other or other in text) for _, other in pairs)
            return alone and spoken and len(said) == 1 and (said == [text] or kind not in self._copied)

        return [pair for pair in pairs if says(*pair)]


def swapped(example: Example, kind: str, text: str, other: str) -> Example:
    """The example with one quotation in place of another."""

    def replaced(words: str) -> str:
        return whole(text).sub(lambda said: as_said(said.group(), text, other), words)

    program = example.program.replace(f'{kind} "{text}"', f'{kind} "{other}"')
    return Example(
        replaced(example.utterance), program, example.canonical and replaced(example.canonical), example.context
    )


def as_said(said: str, text: str, other: str) -> str:
    """Another text in the letters in which the old one was said."""
    if said == text:
        return other
    return other.lower() if said.islower() else other.capitalize()


def whole(text: str) -> re.Pattern[str]:
    """Where a text is said in whole words, in small letters or capitals."""
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
