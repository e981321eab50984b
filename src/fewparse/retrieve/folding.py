"""Folding: words of one grammar rule are replaced by the rule's name before utterances are compared.

"What do I have with Elena tomorrow?" should find "what does Tom have on Friday" rather than other utterances
that mention Elena. The grammar defines which words are of one kind.
"""

import re
from collections.abc import Callable, Mapping

from fewparse.errors import UnknownName
from fewparse.grammar.rules import Grammar, Text, reachable_names
from fewparse.lm.usage import Usage
from fewparse.retrieve.retriever import Retriever, Scores, ScoringRetriever

WORD = re.compile(r"[\w:.]+")
PUNCTUATION = ":."
Fold = Callable[[str], str]


def words_of_rules(grammar: Grammar, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the words that each of these rules derives, by the rule's name in lower case."""
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


def rules_of_words(grammar: Grammar, names: tuple[str, ...]) -> dict[str, str]:
    """Return the inverse of `words_of_rules`: a lower-cased word to the name of its rule.

    Raises `UnknownName` for a name that is no rule.
    """
    for name in names:
        if name not in grammar.rules:
            hint = "Add a rule of that name to the grammar, or remove it from `fold` in domain.toml."
            raise UnknownName("rule to fold", name, grammar.rules, hint)
    return {word.lower(): rule for rule, words in words_of_rules(grammar, names).items() for word in words}


def folding(rules: Mapping[str, str]) -> Fold:
    """Return a function that replaces known words by their rule, and words with a digit by `number`."""

    def replaced(match: re.Match[str]) -> str:
        text = match.group()
        word = text.rstrip(PUNCTUATION)  # a pattern that ends at the last letter takes quadratic time
        rest = text[len(word) :]
        if any(char.isdigit() for char in word):
            return f"number{rest}"
        return rules.get(word.lower(), word) + rest

    return lambda text: WORD.sub(replaced, text)


class FoldedRetriever:
    """A retriever over a folded pool: folds the utterance, then ranks."""

    def __init__(self, inner: Retriever, fold: Fold) -> None:
        self._inner = inner
        self._fold = fold

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        """Return the inner retriever's ranking of the folded utterance."""
        return self._inner.rank(self._fold(utterance), usage)

    def scores(self, utterance: str, usage: Usage) -> Scores | None:
        """Return the inner retriever's scores of the folded utterance; None if it has none."""
        inner = self._inner
        return inner.scores(self._fold(utterance), usage) if isinstance(inner, ScoringRetriever) else None
