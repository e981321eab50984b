"""Folding: names of one kind count as one word, so that utterances of one shape find each other.

"What do I have with Elena tomorrow?" should find "what does Tom have on Friday", not whatever else mentions
Elena. Which words are of one kind, the grammar already says.
"""

import re
from collections.abc import Callable, Mapping

from fewparse.grammar.rules import Grammar, Text, reachable_names
from fewparse.lm.usage import Usage
from fewparse.retrieve.retriever import Retriever

WORD = re.compile(r"[\w:.]*\w")
Fold = Callable[[str], str]


def words_of_kinds(grammar: Grammar, names: tuple[str, ...]) -> dict[str, list[str]]:
    """The words that each of these rules can be, by the rule's name in lower case."""
    return {
        name.lower(): [
            symbol.text
            for inside in sorted(reachable_names(grammar.rules, name))
            for production in grammar.rules[inside]
            for symbol in production
            if isinstance(symbol, Text) and symbol.text.isalpha() and len(symbol.text) > 1
        ]
        for name in names
    }


def word_kinds(grammar: Grammar, names: tuple[str, ...]) -> dict[str, str]:
    """The words that each of these rules can be, lower-cased, with the rule's name as their kind."""
    return {word.lower(): kind for kind, words in words_of_kinds(grammar, names).items() for word in words}


def folding(kinds: Mapping[str, str]) -> Fold:
    """A function that replaces known words by their kind, and whatever has a digit by `number`."""

    def replaced(match: re.Match[str]) -> str:
        word = match.group().lower()
        if any(char.isdigit() for char in word):
            return "number"
        return kinds.get(word, match.group())

    return lambda text: WORD.sub(replaced, text)


class Folded:
    """A retriever over a folded pool that folds what it is asked."""

    def __init__(self, inner: Retriever, fold: Fold) -> None:
        self._inner = inner
        self._fold = fold

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """The inner retriever's ranking of the folded utterance."""
        return self._inner.rank(self._fold(utterance), usage)
