"""Words, for retrieval."""

import re

WORD = re.compile(r"\w+(?:'\w+)?")


def words(text: str) -> list[str]:
    """The words of a text, lower-cased, in order."""
    return WORD.findall(text.lower())
