"""Right-hand sides with groups, options and repetition (EBNF expressions), and their lowering to plain rules."""

from collections.abc import Mapping
from dataclasses import dataclass

from fewparse.errors import LimitExceeded
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text, fresh_name

MAX_RULES = 60_000
MAX_SIZE = 2_000_000
MAX_NESTING = 100


@dataclass(frozen=True)
class Sequence:
    """A concatenation; the empty string if there are no parts."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True)
class Choice:
    """A choice between alternatives."""

    options: tuple["Expression", ...]


@dataclass(frozen=True)
class Repeat:
    """A repetition of `low` to `high` times; unbounded if `high` is None."""

    part: "Expression"
    low: int
    high: int | None


Expression = Symbol | Sequence | Choice | Repeat


def lower(definitions: Mapping[str, Expression], start: str) -> Grammar:
    """Return the grammar of these definitions; repetition becomes left recursion, which parsers handle best.

    Raises LimitExceeded if it is too large, such as by bounded repetition, or an expression is nested too deeply.
    """
    lowering = Lowering(definitions)
    for name, expression in definitions.items():
        check_nesting(name, expression)
        lowering.rules[name] = lowering.productions(name, expression)
    return Grammar(dict(lowering.rules), start)


def check_nesting(name: str, expression: Expression) -> None:
    """Raise LimitExceeded if an expression is nested so deeply that recursive functions cannot process it."""
    level, depth = [expression], 0
    while level:
        if depth > MAX_NESTING:
            message = f"the rule `{name}` is nested more than {MAX_NESTING} levels deep"
            raise LimitExceeded(message, "Name its inner groups as rules.")
        level = [part for outer in level for part in parts_of(outer)]
        depth += 1


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the parts of an expression; none of a symbol."""
    if isinstance(expression, Repeat):
        return (expression.part,)
    if isinstance(expression, Choice):
        return expression.options
    return expression.parts if isinstance(expression, Sequence) else ()


def size_of(symbol: Symbol) -> int:
    """Return the size of a symbol: the number of its characters or ranges."""
    if isinstance(symbol, Ref):
        return 1
    return len(symbol.text) if isinstance(symbol, Text) else len(symbol.ranges)


class Lowering:
    """The rules of some definitions, with fresh nonterminals for nested expressions."""

    def __init__(self, definitions: Mapping[str, Expression]) -> None:
        self._used: dict[str, object] = dict(definitions)
        self._shared: dict[Expression, Ref] = {}
        self._size = 0
        self.rules: dict[str, tuple[Production, ...]] = {}

    def productions(self, name: str, expression: Expression) -> tuple[Production, ...]:
        """Return the alternatives of an expression."""
        options = expression.options if isinstance(expression, Choice) else (expression,)
        return tuple(self._production(name, option) for option in options)

    def _production(self, name: str, expression: Expression) -> Production:
        parts = expression.parts if isinstance(expression, Sequence) else (expression,)
        symbols = tuple(self._symbol(name, part) for part in parts)
        self._reserve(name, 1 + sum(map(size_of, symbols)))
        return symbols

    def _reserve(self, name: str, size: int) -> None:
        """Count what will be added to the grammar; raise LimitExceeded before it becomes too large."""
        self._size += size
        if self._size > MAX_SIZE:
            message = f"the grammar grows beyond {MAX_SIZE:,} symbols, characters and ranges (at `{name}`)"
            raise LimitExceeded(message, "Shorten its literals, classes and bounded repetitions.")

    def _symbol(self, name: str, expression: Expression) -> Symbol:
        if isinstance(expression, Text | Chars | Ref):
            return expression
        if expression not in self._shared:
            self._shared[expression] = self._named(name, expression)
        return self._shared[expression]

    def _named(self, name: str, expression: Expression) -> Ref:
        if isinstance(expression, Repeat):
            return self._repeated(name, expression)
        return self._add(name, self.productions(name, expression))

    def _repeated(self, name: str, repeat: Repeat) -> Ref:
        if max(repeat.low, repeat.high or 0) > MAX_RULES:
            raise too_large(name)
        part = self._symbol(name, repeat.part)
        self._reserve(name, max(repeat.low, repeat.high or 0) * (1 + size_of(part)))
        if repeat.high is None:
            required = (part,) * repeat.low
            fresh = self._fresh(name)
            return self._add(name, (required, (Ref(fresh), part)), fresh)
        chain: Production = ()
        for _ in range(repeat.high - repeat.low):
            chain = (self._add(name, ((), (part, *chain))),)
        return self._add(name, ((part,) * repeat.low + chain,))

    def _add(self, name: str, productions: tuple[Production, ...], fresh: str | None = None) -> Ref:
        fresh = fresh or self._fresh(name)
        self.rules[fresh] = productions
        if len(self.rules) > MAX_RULES or sum(map(len, productions)) > MAX_RULES:
            raise too_large(name)
        return Ref(fresh)

    def _fresh(self, name: str) -> str:
        fresh = fresh_name(f"{name.split('__')[0]}__{len(self.rules) + 1}", self._used)
        self._used[fresh] = None
        return fresh


def too_large(name: str) -> LimitExceeded:
    """Return the error for a grammar that bounded repetition makes too large."""
    return LimitExceeded(
        f"the grammar grows beyond {MAX_RULES} rules (at `{name}`)", "Shorten its bounded repetitions."
    )
