"""Decide whether a text is well-formed under a grammar, a JSON Schema or the constraint of a domain."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from fewparse.constrain.state import Constraint, State
from fewparse.domains.domain import Domain
from fewparse.errors import InvalidProgram
from fewparse.example import Target
from fewparse.grammar.parsing.chart import MAX_EXPECTED, ChartParser, ParseFailure, describe
from fewparse.grammar.rules import Chars, Grammar
from fewparse.vocabulary import BYTES

if TYPE_CHECKING:
    from fewparse.json_schema.document import Document


class Verdict(NamedTuple):
    """Whether a text is well-formed; if not, up to which offset it could start one, and what could follow there.

    `position` is None if the mistake is not at one place. `error` is the reason in words.
    """

    accepted: bool
    position: int | None = None
    expected: tuple[str, ...] = ()
    error: str | None = None


ACCEPTED = Verdict(True)


class Acceptor(ABC):
    """Decides about texts."""

    @abstractmethod
    def verdict(self, text: str) -> Verdict:
        """Return whether a text is well-formed; raise `LimitExceeded` if it takes too long to find out."""


class GrammarAcceptor(Acceptor):
    """The sentences of a grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self._parser = ChartParser(grammar)

    def verdict(self, text: str) -> Verdict:
        """Return where the grammar does not derive a text."""
        result = self._parser.parse(text)
        if isinstance(result, ParseFailure):
            return Verdict(False, result.at, result.expected, f"the text {result.reason}")
        return ACCEPTED


class SchemaAcceptor(Acceptor):
    """The JSON texts that are valid under a schema, in any layout and with keys in any order."""

    def __init__(self, document: "Document") -> None:
        from fewparse.constrain.json import JsonConstraint
        from fewparse.json_schema.translate import translate

        self._constraint = JsonConstraint(translate(document), BYTES)

    def verdict(self, text: str) -> Verdict:
        """Return where a text is not valid."""
        try:
            self._constraint.canonical(text)
        except InvalidProgram as error:
            return invalid(error)
        return ACCEPTED


class DomainAcceptor(Acceptor):
    """The outputs of a domain for a target; programs may be written in any way that the domain's examples may."""

    def __init__(self, domain: Domain, target: Target) -> None:
        self._domain = domain
        self._target = target
        domain.constraint_kind.check(target)

    def verdict(self, text: str) -> Verdict:
        """Return where a text is not an output."""
        if self._target == "program":
            try:
                text = self._domain.constraint_kind.canonical_program(text)
            except InvalidProgram as error:
                return invalid(error)
        return self._outputs.verdict(text)

    @cached_property
    def _outputs(self) -> Acceptor:
        if self._domain.language is not None:
            return GrammarAcceptor(self._domain.side(self._target))
        return ConstraintAcceptor(self._domain.constraint(BYTES, self._target))


class ConstraintAcceptor(Acceptor):
    """The strings of a constraint that has no grammar."""

    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint

    def verdict(self, text: str) -> Verdict:
        """Return where a text cannot be continued to a string of the constraint."""
        count, state = self._constraint.start().walk([char.encode() for char in text])
        if count == len(text) and state.may_end:
            return ACCEPTED
        where = "ends too early" if count == len(text) else f"is not well-formed from character {count + 1} on"
        return Verdict(False, count, following(state), f"the text {where}")


def following(state: State) -> tuple[str, ...]:
    """Describe what may follow a state of the vocabulary of single bytes."""
    forced = state.forced()
    if forced:
        return (repr(forced.decode(errors="replace")),)
    codes = [byte for byte in range(256) if state.mask()[byte]]
    chars = Chars.of([(byte, byte) for byte in codes if byte < 128])
    shown = [describe(chars)] if chars.ranges else []
    return (*shown, *(["other characters"] if any(byte >= 128 for byte in codes) else []))[:MAX_EXPECTED]


def invalid(error: InvalidProgram) -> Verdict:
    """Return the verdict on a program that cannot be written as the constraint writes it."""
    return Verdict(False, error.at, error.expected, f"the text {error.message}")
