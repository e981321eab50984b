"""Find numbers of an utterance that the constraint does not allow where the output has another number."""

import re
from collections.abc import Callable, Iterator, Sequence

NUMBER = re.compile(r"(?<![\w.,:/-])[0-9]+(?:\.[0-9]+)?(?![\w:/-]|[.,][0-9])")
"""A number on its own: not part of a word, a time, a date or a longer number."""


def excluded_numbers(utterance: str, outputs: Sequence[str], accepts: Callable[[str], bool]) -> Iterator[str]:
    """Yield a note for each number that is said, and that no candidate could have in the place of its own.

    A number that could be written was replaced by the model, which may be right: "in two weeks, 2 of them".
    """
    said = dict.fromkeys(NUMBER.findall(utterance))
    written = {number for output in outputs for number in NUMBER.findall(output)}
    for number in said:
        places = [(output, match) for output in outputs for match in NUMBER.finditer(output)]
        others = [(output, match) for output, match in places if match.group() not in said]
        if number in written or not others:
            continue
        if not any(accepts(output[: match.start()] + number + output[match.end() :]) for output, match in others):
            instead = " or ".join(dict.fromkeys(match.group() for _, match in others))
            yield f"the utterance says {number}, which the grammar does not allow in the place of {instead}"
