"""Read synchronous grammars in the `.scfg` format.

    greet -> "hello " who | "hi " who , "(greet " who ")"    alternative utterances, and their program
    digits -> /[0-9]/ digits                                 the same on both sides
    please 1> " please" | #e                                 utterance side only, no program
    twice(x) 2> "(" x " " x ")"                              a macro for program sides

`name?` and `"text"?` are optional. Nonterminals of the two sides are linked in order: the second `who` of an
utterance is the second `who` of its program. A regular expression matches one character.
"""

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeAlias

from fewparse.errors import GrammarError, LimitExceeded
from fewparse.grammar.readers.regex import CharacterClasses
from fewparse.grammar.readers.scfg_lines import (
    EMPTY,
    Call,
    Item,
    LineReader,
    Macro,
    OptionalItem,
    Regex,
    Rule,
    shown,
)
from fewparse.grammar.readers.scfg_names import check_names
from fewparse.grammar.rules import Production, Ref, Text, fresh_name
from fewparse.grammar.synchronous import Location, PairedRule, Pairing, SynchronousGrammar

MAX_LINE_LENGTH = 1_000_000
MAX_RULES = 200_000
MAX_SYMBOLS = 100_000
MAX_LINKS = 1_000_000
MAX_STEPS = 10_000_000
MAX_SHOWN_CYCLE = 10
MAX_SUGGESTION_LENGTH = 100
MAX_SUGGESTIONS = 1_000
NO_PARTNERS: Iterator[int] = iter(())

FlatItem: TypeAlias = Text | Ref | Regex | OptionalItem
LinkedItem: TypeAlias = Text | Ref | Regex
Arguments: TypeAlias = dict[str, tuple[Item, "Arguments"]]


def read_scfg_text(source: str, path: Path | str = "<grammar>", start: str = "start") -> SynchronousGrammar:
    """Return the grammar of one source text."""
    return read_scfg([(str(path), source)], start)


def read_scfg(
    sources: Iterable[tuple[str, str]], start: str = "start", *, complete: bool = False
) -> SynchronousGrammar:
    """Return the grammar of several (path, text) sources together.

    A name without a rule derives nothing; with `complete`, it is a mistake. Raises GrammarError with line and
    caret for a mistake, LimitExceeded for a grammar that is too large.
    """
    macros = Macros()
    definitions: list[tuple[Rule | Macro, Line]] = []
    rules: list[tuple[Rule, Line]] = []
    interned: dict[str, Text | Ref] = {}
    classes = CharacterClasses()
    paths = []
    for path, text in sources:
        paths.append(path)
        for line, content in lines(path, text):
            reader = LineReader(content, line.fail, interned, classes)
            read = reader.read()
            definitions.append((read, line))
            if isinstance(read, Rule):
                rules.append((read, line))
            else:
                macros.define(read, line, reader.calls)
            macros.add_calls(reader.calls, line)
            if len(rules) + len(macros) > MAX_RULES:
                raise LimitExceeded(f"{line}: the grammar has more than {MAX_RULES:,} rules")
    macros.check()
    if complete:
        check_names(definitions)
    locations: dict[str, Location] = {}
    for rule, line in rules:
        locations.setdefault(rule.name, Location(line.path, line.number))
    if start not in locations:
        path = paths[0] if paths else "<grammar>"
        raise GrammarError(f"no rule is called `{start}`", path, hint="It is the start symbol of the grammar.")
    expanded = [macros.expand_rule(rule, line) for rule, line in rules]
    return SynchronousGrammar(paired_rules(expanded), start, locations)


class Line(NamedTuple):
    """A line of a source, for error messages."""

    path: str
    number: int
    source: str

    @property
    def content(self) -> str:
        """The text of the line."""
        return self.source.split("\n")[self.number - 1]

    def fail(self, message: str, at: int, hint: str) -> NoReturn:
        """Raise GrammarError for a mistake at an offset into the line."""
        raise GrammarError(message, self.path, self.number, at + 1, self.source, hint)

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


def lines(path: str, source: str) -> Iterator[tuple[Line, str]]:
    """Yield the lines that are neither empty nor comments."""
    for number, content in enumerate(source.split("\n"), 1):
        stripped = content.strip()
        if not stripped or stripped[0] == "#":
            continue
        line = Line(path, number, source)
        if len(content) > MAX_LINE_LENGTH:
            message = f"{line}: the line has {len(content):,} characters; at most {MAX_LINE_LENGTH:,} are allowed"
            raise LimitExceeded(message, "Split the rule into several.")
        yield line, content


class FlatRule(NamedTuple):
    """A rule with its macro calls expanded and without empty items."""

    name: str
    utterances: list[list[FlatItem]]
    program: list[FlatItem] | None


class Macros:
    """All macro definitions and macro calls of a grammar."""

    def __init__(self) -> None:
        self._defined: dict[str, tuple[Macro, Line, list[Call]]] = {}
        self._calls: list[tuple[Call, Line]] = []
        self._steps = 0

    def __len__(self) -> int:
        return len(self._defined)

    def define(self, macro: Macro, line: Line, calls: list[Call]) -> None:
        """Add a macro, whose body has these calls."""
        if macro.name in self._defined:
            hint = f"It is already defined at {self._defined[macro.name][1]}."
            line.fail(f"the macro `{shown(macro.name)}` is defined twice", macro.at, hint)
        self._defined[macro.name] = (macro, line, calls)

    def add_calls(self, calls: list[Call], line: Line) -> None:
        """Add calls, which are checked when all macros have been read."""
        self._calls += [(call, line) for call in calls]

    def check(self) -> None:
        """Check that every call has a macro with as many parameters, and that no macro calls itself."""
        for call, line in self._calls:
            if call.name not in self._defined:
                line.fail(f"no macro is called `{shown(call.name)}`", call.at, self._nearest(call.name))
            parameters, given = self._defined[call.name][0].parameters, len(call.arguments)
            if len(parameters) != given:
                message = f"the macro `{shown(call.name)}` takes {counted(len(parameters))}, not {given}"
                line.fail(message, call.at, f"It is defined at {self._defined[call.name][1]}.")
        graph = {name: [call.name for call in calls] for name, (_, _, calls) in self._defined.items()}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            self._fail_cycle(error.args[1][::-1])

    def expand_rule(self, rule: Rule, line: Line) -> FlatRule:
        """Return the rule with the macro calls of its program expanded."""
        utterances = [self._expand(utterance, line) for utterance in rule.utterances]
        program = None if rule.program is None else self._expand(rule.program, line)
        if len(utterances) * len(program or []) > MAX_LINKS:
            message = f"{line}: {len(utterances):,} alternatives for {len(program or []):,} symbols are too many"
            raise LimitExceeded(message, "Split the rule into several.")
        return FlatRule(rule.name, utterances, program)

    def _expand(self, items: list[Item], line: Line) -> list[FlatItem]:
        """Expand the macro calls among some items, and drop empty items."""
        flat: list[FlatItem] = []
        for item in items:
            if isinstance(item, Call):
                flat += islice(self._expand_call(item, line), MAX_SYMBOLS + 1)
            elif item is not EMPTY:
                flat.append(item)
            if len(flat) > MAX_SYMBOLS:
                message = f"{line}: a right-hand side has more than {MAX_SYMBOLS:,} symbols"
                raise LimitExceeded(message, "Split the rule into several.")
        return flat

    def _expand_call(self, call: Call, line: Line) -> Iterator[FlatItem]:
        """Expand a call with an explicit stack; an argument is expanded in the scope where it is written."""
        items: Iterator[Item] = iter((call,))
        unbound: Arguments = {}
        stack = [(items, unbound)]
        while stack:
            rest, bound = stack[-1]
            item = next(rest, None)
            self._steps += 1
            if self._steps > MAX_STEPS:
                message = f"{line}: the macros expand in more than {MAX_STEPS:,} steps"
                raise LimitExceeded(message, "Use rules instead of macros that call macros.")
            if item is None:
                stack.pop()
            elif isinstance(item, Call):
                macro = self._defined[item.name][0]
                arguments = ((argument, bound) for argument in item.arguments)
                stack.append((iter(macro.body), dict(zip(macro.parameters, arguments, strict=True))))
            elif isinstance(item, Ref) and item.name in bound:
                argument, outer = bound[item.name]
                stack.append((iter((argument,)), outer))
            elif item is not EMPTY:
                yield item

    def _nearest(self, name: str) -> str:
        known = [macro for macro in self._defined if len(macro) <= MAX_SUGGESTION_LENGTH][:MAX_SUGGESTIONS]
        near = difflib.get_close_matches(name[:MAX_SUGGESTION_LENGTH], known, n=3, cutoff=0.5)
        return f"Did you mean {' or '.join(near)}?" if near else "A macro is defined with 2>, as in name(x) 2> ..."

    def _fail_cycle(self, cycle: list[str]) -> NoReturn:
        """Raise GrammarError for a cycle, given as names that call each other in order; the last is the first."""
        _, line, calls = self._defined[cycle[0]]
        at = next(call.at for call in calls if call.name == cycle[1])
        path = [*cycle[:MAX_SHOWN_CYCLE], "...", cycle[-1]] if len(cycle) > MAX_SHOWN_CYCLE + 1 else cycle
        hint = f"{' calls '.join(map(shown, path))}. Use a rule for recursion, not a macro."
        line.fail(f"the macro `{shown(cycle[0])}` calls itself", at, hint)


def paired_rules(rules: list[FlatRule]) -> tuple[PairedRule, ...]:
    """Replace optional symbols by nonterminals, link the two sides, and group utterances of the same program."""
    names = optional_names(rules)
    groups: defaultdict[tuple[str, Production | None], dict[Pairing, None]] = defaultdict(dict)
    for name, utterances, program in [*rules, *optional_rules(rules, names)]:
        target = None if program is None else without_optionals(program, names)
        pairings = groups[name, None if target is None else production(target)]
        for utterance in utterances:
            source = without_optionals(utterance, names)
            pairings[Pairing(production(source), () if target is None else linked(source, target))] = None
    return tuple(PairedRule(name, program, tuple(pairings)) for (name, program), pairings in groups.items())


def optionals(expansions: Iterable[list[FlatItem]]) -> dict[OptionalItem, None]:
    """Return the optional symbols of some right-hand sides, in order of first appearance."""
    return {item: None for items in expansions for item in items if isinstance(item, OptionalItem)}


def optional_names(rules: list[FlatRule]) -> dict[OptionalItem, str]:
    """Return a fresh nonterminal for each optional symbol."""
    sides = [side for rule in rules for side in (*rule.utterances, rule.program or [])]
    found = optionals(sides)
    if not found:
        return {}
    used = {rule.name: None for rule in rules} | {
        s.name: None for side in sides for s in side if isinstance(s, Ref)
    }
    return {
        optional: fresh_name(
            f"maybe___t_{optional.item.text}"
            if isinstance(optional.item, Text)
            else f"maybe___nt_{optional.item.name}",
            used,
        )
        for optional in found
    }


def optional_rules(rules: list[FlatRule], names: dict[OptionalItem, str]) -> Iterator[FlatRule]:
    """Yield the rules of optional symbols, present and absent, on the sides where they occur.

    A symbol that is optional on program sides only gets no rule.
    """
    programs = optionals(rule.program for rule in rules if rule.program is not None)
    for optional in optionals(utterance for rule in rules for utterance in rule.utterances):
        for expansion in ([optional.item], []):
            flat: list[FlatItem] = list(expansion)
            yield FlatRule(names[optional], [flat], flat if optional in programs else None)


def without_optionals(items: list[FlatItem], names: dict[OptionalItem, str]) -> list[LinkedItem]:
    """Replace optional symbols by the nonterminals of their rules."""
    return [Ref(names[item]) if isinstance(item, OptionalItem) else item for item in items]


def production(items: list[LinkedItem]) -> Production:
    """Return the symbols of the grammar for some items."""
    return tuple([item.chars if isinstance(item, Regex) else item for item in items])


def linked(utterance: list[LinkedItem], program: list[LinkedItem]) -> tuple[int | None, ...]:
    """Return the index of the partner of each program item: the n-th item of a name is linked to the n-th."""
    indices: dict[str, list[int]] = {}
    for index, item in enumerate(utterance):
        if not isinstance(item, Text):
            indices.setdefault(item.name, []).append(index)
    partners = {name: iter(found) for name, found in indices.items()}
    return tuple(
        [None if isinstance(item, Text) else next(partners.get(item.name, NO_PARTNERS), None) for item in program]
    )


def counted(parameters: int) -> str:
    """Return a number of arguments in words."""
    return f"{parameters or 'no'} argument{'s' * (parameters != 1)}"
