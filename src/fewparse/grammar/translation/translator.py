"""Translate between the two sides of a synchronous grammar, exactly and both ways."""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass

from fewparse.errors import LimitExceeded
from fewparse.grammar.parsing.chart import ParseFailure
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.synchronous import Side, SynchronousGrammar
from fewparse.grammar.translation.inside import Inside
from fewparse.grammar.translation.kbest import Reading, best_readings
from fewparse.grammar.translation.scorers import FewestRules, Learned, Scorer, Shortest, Use
from fewparse.grammar.translation.transfer import Transfer


@dataclass(frozen=True)
class Translation:
    """What a text means on the other side.

    `readings` are the best ones asked for, each text once; `complete` says that there are no others.
    `derivations` counts those of the source text; None stands for infinitely many.
    """

    source: str
    readings: tuple[Reading, ...]
    complete: bool
    derivations: int | None
    failure: ParseFailure | None

    @property
    def best(self) -> str | None:
        """The preferred text; None where there is none."""
        return self.readings[0].text if self.readings else None

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts, the preferred one first."""
        return tuple(reading.text for reading in self.readings)

    @property
    def error(self) -> str | None:
        """Why there is no text."""
        if self.failure is not None:
            return self.failure.reason
        return None if self.readings else "is derived, but its derivations have no counterpart on the other side"


class Direction:
    """From one side to the other."""

    def __init__(self, grammar: SynchronousGrammar, source: Side) -> None:
        self.parser = ForestParser(grammar.side(source))
        self._transfer = Transfer(grammar, source, self.parser.shapes.all)

    def translate(self, text: str, scorer: Scorer, wanted: int) -> Translation:
        """The best texts of the other side."""
        forest = self.parser.parse(text)
        if isinstance(forest, ParseFailure):
            return Translation(text, (), True, 0, forest)
        readings, complete = best_readings(Inside(forest, self._transfer, scorer), wanted)
        return Translation(text, tuple(readings), complete, forest.count(), None)


class Translator:
    """Both directions. Programs are chosen by the scorer; of the utterances for a program, the shortest."""

    def __init__(self, grammar: SynchronousGrammar, scorer: Scorer | None = None) -> None:
        self.grammar = grammar
        self.scorer: Scorer = scorer or Shortest()
        self._directions: dict[Side, Direction] = {}

    def direction(self, source: Side) -> Direction:
        """The way from one side to the other, made ready on first use."""
        if source not in self._directions:
            self._directions[source] = Direction(self.grammar, source)
        return self._directions[source]

    def to_program(self, utterance: str, wanted: int = 1) -> Translation:
        """The programs that a canonical utterance stands for, best first."""
        return self.direction("utterance").translate(utterance, self.scorer, wanted)

    def to_utterance(self, program: str, wanted: int = 1) -> Translation:
        """The canonical utterances of a program: the shortest first, ties by text."""
        return self.direction("program").translate(program, Shortest(), wanted)

    def learn(self, programs: Iterable[str]) -> "Translator":
        """A translator whose scorer has seen these programs; those that cannot be parsed teach nothing."""
        learned = copy(self)
        learned.scorer = Learned(self.grammar, self._uses(programs))
        return learned

    def _uses(self, programs: Iterable[str]) -> Iterator[Use]:
        """The rules of each program's smallest derivation, with their places."""
        for program in programs:
            try:
                translation = self.direction("program").translate(program, FewestRules(), 1)
            except LimitExceeded:
                continue
            stack: list[tuple[Reading | str, tuple[int, int] | None]] = [(r, None) for r in translation.readings]
            while stack:
                reading, context = stack.pop()
                if isinstance(reading, Reading):
                    option = reading.option
                    yield option.rule, context
                    for filler, place in zip(reading.fillers, option.places, strict=True):
                        if place is not None:
                            stack.append((filler, (option.rule, place)))
