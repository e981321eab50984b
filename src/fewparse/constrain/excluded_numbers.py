"""Find numbers of an utterance that the constraint does not allow where the output has another number."""

import re
from collections.abc import Callable, Iterator

NUMBER = re.compile(r"(?<![\w.,:/-])[0-9]+(?:\.[0-9]+)?(?![\w:/-]|[.,][0-9])")
"""A number on its own: not part of a word, a time, a date or a longer number."""


def excluded_numbers(utterance: str, output: str, accepts: Callable[[str], bool]) -> Iterator[str]:
    """Yield a note for each number that is said and cannot be written in the place of any other number.

    A number that could be written was replaced by the model, which may be right: "in two weeks, 2 of them".
    """
    said = dict.fromkeys(NUMBER.findall(utterance))
    written = [match for match in NUMBER.finditer(output) if match.group() not in said]
    outputs = set(NUMBER.findall(output))
    for number in said:
        if number in outputs or not written:
            continue
        if not any(accepts(output[: match.start()] + number + output[match.end() :]) for match in written):
            others = " or ".join(dict.fromkeys(match.group() for match in written))
            yield f"the utterance says {number}, which the grammar does not allow where the output has {others}"
