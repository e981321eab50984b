"""Data augmentation: swap names or quoted texts in the utterance and the output of an example alike."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from fewparse.constrain.cfg import CfgConstraint
from fewparse.domains.constraints import Quotation
from fewparse.domains.domain import Domain
from fewparse.example import TARGETS, Example, Target
from fewparse.retrieve.folding import words_of_rules
from fewparse.vocabulary import BYTES

WORD = re.compile(r"[A-Za-z]+")


class Augmenter(Protocol):
    """Makes new training examples from existing ones."""

    def augment(self, example: Example, random: np.random.Generator) -> Example:
        """Return a variant of the example that is correct too, or the example itself."""


def augmenter_for(domain: Domain) -> Augmenter | None:
    """Return a `NameSwap` if the domain folds names, else a `QuotationSwap`; None without a grammar."""
    if domain.language is None:
        return None
    targets: tuple[Target, ...] = TARGETS if domain.translator else ("program",)
    sides = {target: CfgConstraint(domain.side(target), BYTES) for target in targets}

    def is_grammatical(example: Example) -> bool:
        outputs = ((side, example.output(target).encode()) for target, side in sides.items())
        return all(side.accepts(output) for side, output in outputs if output)

    if fold := domain.table.retrieve.fold:
        return NameSwap(words_of_rules(domain.grammar, fold), is_grammatical)
    kind = domain.constraint_kind
    return QuotationSwap(domain.examples, kind.quotation, kind.known_texts, is_grammatical)


class NameSwap:
    """Replaces names by others of the same kind, if `is_grammatical` accepts the result.

    `kinds` maps each kind of name to its words.
    """

    def __init__(self, kinds: Mapping[str, Sequence[str]], is_grammatical: Callable[[Example], bool]) -> None:
        self._same_kind = {word.lower(): words for words in kinds.values() for word in words}
        self._is_grammatical = is_grammatical

    def augment(self, example: Example, random: np.random.Generator) -> Example:
        """Return the example with other names, or the example itself if no replacement is possible."""
        output_words = {word.lower() for word in WORD.findall(f"{example.program} {example.canonical}")}
        utterance_words = {word.lower() for word in WORD.findall(example.utterance)}
        names = sorted(utterance_words & output_words & set(self._same_kind))
        new_names: dict[str, str] = {}
        for name in names:
            unused = [
                word
                for word in self._same_kind[name]
                if word.lower() not in names
                and word not in new_names.values()
                and word.lower() not in output_words
            ]
            if unused:
                new_names[name] = unused[random.integers(len(unused))]
        if not new_names:
            return example
        augmented = Example(
            replace_words(example.utterance, new_names),
            replace_words(example.program, new_names),
            example.canonical and replace_words(example.canonical, new_names),
            example.context,
        )
        return augmented if self._is_grammatical(augmented) else example


def replace_words(text: str, replacements: Mapping[str, str]) -> str:
    """Replace words by a table with lower-case keys; a text in lower case stays in lower case."""

    def replacement(match: re.Match[str]) -> str:
        word = match.group()
        new = replacements.get(word.lower(), word)
        return new.lower() if word.islower() and text.islower() else new

    return WORD.sub(replacement, text)


class QuotationSwap:
    """Replaces quoted texts by others of the same kind, if `is_grammatical` accepts the result.

    `quotation` is how programs quote texts. Others of the same kind are those of the examples and `known_texts`.
    In `#(String "lunch with Ann")` the text is copied from the utterance exactly. In `#(DayOfWeek "FRIDAY")` a
    word of the utterance is named, in any case; so are known texts.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        quotation: Quotation,
        known_texts: Mapping[str, Sequence[str]],
        is_grammatical: Callable[[Example], bool],
    ) -> None:
        self._quotation = quotation
        pairs = [pair for example in examples for pair in quotation.pattern.findall(example.program)]
        self._copied_kinds = {kind for kind, text in pairs if not text.isupper()} - set(known_texts)
        found = {pair for example in examples for pair in self._replaceable(example)}
        known = {(kind, text) for kind, texts in known_texts.items() for text in texts}
        self._texts: dict[str, list[str]] = {}
        for kind, text in sorted(found | known):
            self._texts.setdefault(kind, []).append(text)
        self._is_grammatical = is_grammatical

    def augment(self, example: Example, random: np.random.Generator) -> Example:
        """Return the example with other quotations, or the example itself if no replacement is possible."""
        augmented = example
        for kind, text in self._replaceable(example):
            others = [other for other in self._texts.get(kind, ()) if not words(other).search(augmented.utterance)]
            if others:
                augmented = self._replace(augmented, kind, text, others[random.integers(len(others))])
        return augmented if augmented is not example and self._is_grammatical(augmented) else example

    def _replaceable(self, example: Example) -> list[tuple[str, str]]:
        """Return the kind and text of each quotation that occurs once in the utterance and overlaps no other.

        It must occur in the canonical utterance too, if there is one.
        """
        pairs = list(dict.fromkeys(self._quotation.pattern.findall(example.program)))

        def is_replaceable(kind: str, text: str) -> bool:
            found = words(text).findall(example.utterance)
            in_canonical = example.canonical is None or words(text).search(example.canonical) is not None
            separate = not any((kind, text) != pair and (text in pair[1] or pair[1] in text) for pair in pairs)
            same_case = found == [text] or kind not in self._copied_kinds
            return separate and in_canonical and len(found) == 1 and same_case

        return [pair for pair in pairs if is_replaceable(*pair)]

    def _replace(self, example: Example, kind: str, old: str, new: str) -> Example:
        """Replace one quotation in the utterance, the program and the canonical utterance."""

        def replaced(text: str) -> str:
            return words(old).sub(lambda match: match_case(match.group(), old, new), text)

        write = self._quotation.template.format
        program = example.program.replace(write(kind, old), write(kind, new))
        canonical = example.canonical and replaced(example.canonical)
        return Example(replaced(example.utterance), program, canonical, example.context)


def match_case(found: str, old: str, new: str) -> str:
    """Return `new` in the letter case in which `old` was found."""
    if found == old:
        return new
    return new.lower() if found.islower() else new.capitalize()


def words(text: str) -> re.Pattern[str]:
    """Return a pattern that finds a text as whole words, in any letter case."""
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
