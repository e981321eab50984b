"""Exact translation between the two sides of a synchronous grammar, in both directions."""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass

from fewparse.errors import LimitExceeded
from fewparse.grammar.parsing.chart import ParseFailure
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.synchronous import Side, SynchronousGrammar
from fewparse.grammar.translation.inside import Inside
from fewparse.grammar.translation.kbest import Derivation, k_best
from fewparse.grammar.translation.scorers import Context, FewestRules, Learned, RuleUse, Scorer, Shortest
from fewparse.grammar.translation.transfer import Transfer


@dataclass(frozen=True)
class Translation:
    """The translations of a source text.

    `k_best` holds the requested number of best derivations, with distinct texts; `complete` is set if there are no
    others. `derivation_count` counts the derivations of the source text; None means infinitely many.
    """

    source: str
    k_best: tuple[Derivation, ...]
    complete: bool
    derivation_count: int | None
    failure: ParseFailure | None

    @property
    def best(self) -> str | None:
        """The best text; None if there is none."""
        return self.k_best[0].text if self.k_best else None

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts, best first."""
        return tuple(derivation.text for derivation in self.k_best)

    @property
    def error(self) -> str | None:
        """Why there is no text; None if there is one."""
        if self.failure is not None:
            return self.failure.reason
        return None if self.k_best else "is derived, but its derivations have no counterpart on the other side"


class OneWayTranslator:
    """Translation from one side of a grammar to the other."""

    def __init__(self, grammar: SynchronousGrammar, source: Side) -> None:
        self.parser = ForestParser(grammar.side(source))
        self._transfer = Transfer(grammar, source)

    def translate(self, text: str, scorer: Scorer, k: int) -> Translation:
        """Return the k best texts of the other side."""
        forest = self.parser.parse(text)
        if isinstance(forest, ParseFailure):
            return Translation(text, (), True, 0, forest)
        derivations, complete = k_best(Inside(forest, self._transfer, scorer), k)
        return Translation(text, tuple(derivations), complete, forest.count(), None)


class Translator:
    """Translation in both directions: programs are ranked by the scorer, utterances by their length."""

    def __init__(self, grammar: SynchronousGrammar, scorer: Scorer | None = None) -> None:
        self.grammar = grammar
        self.scorer: Scorer = scorer or Shortest()
        self._from_side: dict[Side, OneWayTranslator] = {}

    def from_side(self, source: Side) -> OneWayTranslator:
        """Return the translator from one side to the other, built on first use."""
        if source not in self._from_side:
            self._from_side[source] = OneWayTranslator(self.grammar, source)
        return self._from_side[source]

    def to_program(self, utterance: str, k: int = 1) -> Translation:
        """Return the k best programs of a canonical utterance."""
        return self.from_side("utterance").translate(utterance, self.scorer, k)

    def to_utterance(self, program: str, k: int = 1) -> Translation:
        """Return the k shortest canonical utterances of a program; ties are broken by text."""
        return self.from_side("program").translate(program, Shortest(), k)

    def with_learned_scorer(self, programs: Iterable[str]) -> "Translator":
        """Return a translator whose scorer is estimated from these programs; those without a parse are skipped."""
        learned = copy(self)
        learned.scorer = Learned(self.grammar, self._rule_uses(programs))
        return learned

    def _rule_uses(self, programs: Iterable[str]) -> Iterator[RuleUse]:
        """Yield the rules of each program's smallest derivation, with their contexts."""
        for program in programs:
            try:
                translation = self.from_side("program").translate(program, FewestRules(), 1)
            except LimitExceeded:
                continue
            stack: list[tuple[Derivation | str, Context]] = [(d, None) for d in translation.k_best]
            while stack:
                derivation, context = stack.pop()
                if isinstance(derivation, Derivation):
                    template = derivation.template
                    yield template.rule, context
                    for filler, position in zip(derivation.fillers, template.program_positions, strict=True):
                        if position is not None:
                            stack.append((filler, (template.rule, position)))
