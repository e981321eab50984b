"""Read a synchronous grammar written as `.scfg` rules.

    greet -> "hello " who | "hi " who , "(greet " who ")"    ways to say it, and what it means
    digits -> /[0-9]/ digits                                 the same on both sides
    please 1> " please" | #e                                 said, but without meaning
    twice(x) 2> "(" x " " x ")"                              a macro for program sides

`name?` and `"text"?` may be absent. Names on the two sides belong together by their order: the second `who` of an
utterance is the second `who` of its program. A regular expression stands for one character.
"""

import difflib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeAlias

from fewparse.errors import GrammarError, LimitExceeded
from fewparse.grammar.readers.scfg_lines import NOTHING, Call, Item, LineReader, Macro, Maybe, Regex, Rule, shown
from fewparse.grammar.rules import Production, Ref, Text, fresh_name
from fewparse.grammar.synchronous import PairedRule, Pairing, Place, SynchronousGrammar

LONGEST_LINE = 1_000_000
MOST_RULES = 200_000
MOST_SYMBOLS = 100_000
MOST_LINKS = 1_000_000
MOST_STEPS = 10_000_000
LONGEST_CIRCLE = 10
LONGEST_SUGGESTION = 100
MOST_SUGGESTIONS = 1_000
NOBODY: Iterator[int] = iter(())

Flat: TypeAlias = Text | Ref | Regex | Maybe
Named: TypeAlias = Text | Ref | Regex
Arguments: TypeAlias = dict[str, tuple[Item, "Arguments"]]


def read_scfg_text(source: str, path: Path | str = "<grammar>", start: str = "start") -> SynchronousGrammar:
    """The grammar of one source text."""
    return read_scfg([(str(path), source)], start)


def read_scfg(sources: Iterable[tuple[str, str]], start: str = "start") -> SynchronousGrammar:
    """The grammar of several (path, text) pairs together; mistakes are `GrammarError`s with line and caret."""
    macros = Macros()
    written: list[tuple[Rule, Line]] = []
    known: dict[str, Text | Ref] = {}
    paths = []
    for path, text in sources:
        paths.append(path)
        for line, content in lines(path, text):
            reader = LineReader(content, line.fail, known)
            read = reader.read()
            if isinstance(read, Rule):
                written.append((read, line))
            else:
                macros.define(read, line, reader.calls)
            macros.expect(reader.calls, line)
            if len(written) + len(macros) > MOST_RULES:
                raise LimitExceeded(f"{line}: more than {MOST_RULES:,} rules cannot be read")
    macros.check()
    places: dict[str, Place] = {}
    for rule, line in written:
        places.setdefault(rule.name, Place(line.path, line.number))
    if start not in places:
        path = paths[0] if paths else "<grammar>"
        raise GrammarError(f"no rule is called `{start}`", path, hint="Every grammar begins there.")
    return SynchronousGrammar(compiled([macros.expand_rule(rule, line) for rule, line in written]), start, places)


class Line(NamedTuple):
    """A line of a source, where mistakes are shown."""

    path: str
    number: int
    source: str

    def fail(self, message: str, at: int, hint: str) -> NoReturn:
        """Report a mistake at an offset into the line."""
        raise GrammarError(message, self.path, self.number, at + 1, self.source, hint)

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


def lines(path: str, source: str) -> Iterator[tuple[Line, str]]:
    """The lines that are neither blank nor comments."""
    for number, content in enumerate(source.split("\n"), 1):
        stripped = content.strip()
        if not stripped or stripped[0] == "#":
            continue
        line = Line(path, number, source)
        if len(content) > LONGEST_LINE:
            message = f"{line}: the line has {len(content):,} characters; at most {LONGEST_LINE:,} are read"
            raise LimitExceeded(message, "Split the rule: give its parts names.")
        yield line, content


class FlatRule(NamedTuple):
    """A rule without macro calls and without anything that derives only nothing."""

    name: str
    utterances: list[list[Flat]]
    program: list[Flat] | None


class Macros:
    """All macros, and all calls of them."""

    def __init__(self) -> None:
        self._defined: dict[str, tuple[Macro, Line, list[Call]]] = {}
        self._expected: list[tuple[Call, Line]] = []
        self._steps = 0

    def __len__(self) -> int:
        return len(self._defined)

    def define(self, macro: Macro, line: Line, calls: list[Call]) -> None:
        """Keep a macro, whose body has these calls."""
        if macro.name in self._defined:
            hint = f"It is defined at {self._defined[macro.name][1]} already."
            line.fail(f"the macro `{shown(macro.name)}` is defined twice", macro.at, hint)
        self._defined[macro.name] = (macro, line, calls)

    def expect(self, calls: list[Call], line: Line) -> None:
        """Keep calls to be checked once all macros are known."""
        self._expected += [(call, line) for call in calls]

    def check(self) -> None:
        """Every call finds its macro with as many parameters, and no macro calls itself."""
        for call, line in self._expected:
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
            self._refuse_circle(error.args[1][::-1])

    def expand_rule(self, rule: Rule, line: Line) -> FlatRule:
        """The rule with its program's calls replaced by what the macros say."""
        utterances = [self._expand(utterance, line) for utterance in rule.utterances]
        program = None if rule.program is None else self._expand(rule.program, line)
        if len(utterances) * len(program or []) > MOST_LINKS:
            message = f"{line}: {len(utterances):,} alternatives for {len(program or []):,} symbols are too many"
            raise LimitExceeded(message, "Split the rule: give its parts names.")
        return FlatRule(rule.name, utterances, program)

    def _expand(self, items: list[Item], line: Line) -> list[Flat]:
        """What the items stand for, without nothing."""
        flat: list[Flat] = []
        for item in items:
            if isinstance(item, Call):
                flat += islice(self._called(item, line), MOST_SYMBOLS + 1)
            elif item is not NOTHING:
                flat.append(item)
            if len(flat) > MOST_SYMBOLS:
                message = f"{line}: a right-hand side has more than {MOST_SYMBOLS:,} symbols"
                raise LimitExceeded(message, "Split the rule: give its parts names.")
        return flat

    def _called(self, call: Call, line: Line) -> Iterator[Flat]:
        """Parameters are replaced when they are met; each argument keeps those among which it was written."""
        written: Iterator[Item] = iter((call,))
        unbound: Arguments = {}
        stack = [(written, unbound)]
        while stack:
            rest, bound = stack[-1]
            item = next(rest, None)
            self._steps += 1
            if self._steps > MOST_STEPS:
                message = f"{line}: the macros expand in more than {MOST_STEPS:,} steps"
                raise LimitExceeded(message, "Use rules in place of macros that call macros.")
            if item is None:
                stack.pop()
            elif isinstance(item, Call):
                macro = self._defined[item.name][0]
                arguments = ((argument, bound) for argument in item.arguments)
                stack.append((iter(macro.body), dict(zip(macro.parameters, arguments, strict=True))))
            elif isinstance(item, Ref) and item.name in bound:
                argument, outer = bound[item.name]
                stack.append((iter((argument,)), outer))
            elif item is not NOTHING:
                yield item

    def _nearest(self, name: str) -> str:
        known = [macro for macro in self._defined if len(macro) <= LONGEST_SUGGESTION][:MOST_SUGGESTIONS]
        near = difflib.get_close_matches(name[:LONGEST_SUGGESTION], known, n=3, cutoff=0.5)
        return f"Did you mean {' or '.join(near)}?" if near else "A macro is defined with 2>, as in name(x) 2> ..."

    def _refuse_circle(self, circle: list[str]) -> NoReturn:
        """The names stand in the order in which they call each other; the last is the first."""
        _, line, calls = self._defined[circle[0]]
        at = next(call.at for call in calls if call.name == circle[1])
        path = [*circle[:LONGEST_CIRCLE], "...", circle[-1]] if len(circle) > LONGEST_CIRCLE + 1 else circle
        hint = f"{' calls '.join(map(shown, path))}. What repeats is a rule, not a macro."
        line.fail(f"the macro `{shown(circle[0])}` calls itself", at, hint)


def compiled(rules: list[FlatRule]) -> tuple[PairedRule, ...]:
    """Optional symbols named, sides linked, and all ways to say the same program together."""
    names = optional_names(rules)
    groups: defaultdict[tuple[str, Production | None], dict[Pairing, None]] = defaultdict(dict)
    for name, utterances, program in [*rules, *optional_rules(rules, names)]:
        meant = None if program is None else named(program, names)
        ways = groups[name, None if meant is None else production(meant)]
        for utterance in utterances:
            said = named(utterance, names)
            ways[Pairing(production(said), () if meant is None else linked(said, meant))] = None
    return tuple(PairedRule(name, program, tuple(ways)) for (name, program), ways in groups.items())


def optionals(expansions: Iterable[list[Flat]]) -> dict[Maybe, None]:
    """The optional symbols of some right-hand sides, in order."""
    return {item: None for items in expansions for item in items if isinstance(item, Maybe)}


def optional_names(rules: list[FlatRule]) -> dict[Maybe, str]:
    """A name for each optional symbol that no rule has or uses."""
    sides = [side for rule in rules for side in (*rule.utterances, rule.program or [])]
    found = optionals(sides)
    if not found:
        return {}
    taken = {rule.name: None for rule in rules} | {
        s.name: None for side in sides for s in side if isinstance(s, Ref)
    }
    return {
        maybe: fresh_name(
            f"maybe___t_{maybe.item.text}" if isinstance(maybe.item, Text) else f"maybe___nt_{maybe.item.name}",
            taken,
        )
        for maybe in found
    }


def optional_rules(rules: list[FlatRule], names: dict[Maybe, str]) -> Iterator[FlatRule]:
    """With and without each optional symbol, on the sides where it is used; never on the program side alone."""
    programs = optionals(rule.program for rule in rules if rule.program is not None)
    for maybe in optionals(utterance for rule in rules for utterance in rule.utterances):
        for expansion in ([maybe.item], []):
            flat: list[Flat] = list(expansion)
            yield FlatRule(names[maybe], [flat], flat if maybe in programs else None)


def named(items: list[Flat], names: dict[Maybe, str]) -> list[Named]:
    """Optional symbols become the names of their rules."""
    return [Ref(names[item]) if isinstance(item, Maybe) else item for item in items]


def production(items: list[Named]) -> Production:
    """The symbols of the grammar."""
    return tuple([item.chars if isinstance(item, Regex) else item for item in items])


def linked(said: list[Named], meant: list[Named]) -> tuple[int | None, ...]:
    """For each symbol of a program, where its partner stands: as many of its name come before on either side."""
    waiting: dict[str, list[int]] = {}
    for index, item in enumerate(said):
        if not isinstance(item, Text):
            waiting.setdefault(item.name, []).append(index)
    partners = {name: iter(places) for name, places in waiting.items()}
    return tuple(
        [None if isinstance(item, Text) else next(partners.get(item.name, NOBODY), None) for item in meant]
    )


def counted(parameters: int) -> str:
    """How many arguments that is, in words."""
    return f"{parameters or 'no'} argument{'s' * (parameters != 1)}"
