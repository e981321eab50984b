"""Random sentences of a grammar, and random pairs of an utterance and its program; deterministic for a seed."""

import random
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from fewparse.errors import ConstraintError, LimitExceeded
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text
from fewparse.grammar.synchronous import Pairing, Side, SynchronousGrammar
from fewparse.grammar.translation.shortest_strings import ShortestStrings

DEFAULT_DEPTH = 12
MAX_FREE_STEPS = 1_000
"""After this many steps, a derivation takes the alternatives that end soonest."""
MAX_STEPS = 200_000
MAX_TOTAL_STEPS = 500_000
MAX_CHARACTERS = 200_000
MAX_ATTEMPTS = 20
"""How often a new sample is tried before one is repeated."""
RECURSION_HINT = "Check for recursive rules without an alternative that ends the recursion."


class Pair(NamedTuple):
    """An utterance and a program that are derived together."""

    utterance: str
    program: str


class Goal(NamedTuple):
    """A nonterminal to be derived on one side, or on both sides together if `side` is None."""

    side: Side | None
    name: str


Piece = str | int
"""Text, or the index of a part."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """One expansion of a goal: the parts to be derived, and the two sides in which they occur."""

    parts: tuple[Goal | Chars, ...]
    utterance: tuple[Piece, ...]
    program: tuple[Piece, ...]


def sample_pairs(grammar: SynchronousGrammar, count: int, seed: int, depth: int = DEFAULT_DEPTH) -> Iterator[Pair]:
    """Return `count` random pairs of a grammar, distinct as far as new ones are found within a few attempts.

    The rules of a nonterminal are equally likely, and so are the utterances of a rule, among those that can end
    within `depth`; beyond that depth, and in a large derivation, only those that end soonest are used. Raises
    `ConstraintError` if the grammar derives no pair and `LimitExceeded` if its derivations are too large.
    """
    sampler = Sampler(expansions(grammar), Goal(None, grammar.start))
    if sampler.min_depth is None:
        raise ConstraintError("the grammar derives no utterance together with a program", RECURSION_HINT)
    return prefer_distinct(lambda rng: Pair(*sampler.sample(rng, depth)), count, seed, sampler)


def sample_sentences(grammar: Grammar, count: int, seed: int, depth: int = DEFAULT_DEPTH) -> Iterator[str]:
    """Return `count` random sentences of a plain grammar, in the same manner as `sample_pairs`."""
    sampler = Sampler(plain_expansions(grammar, "utterance"), Goal("utterance", grammar.start))
    if sampler.min_depth is None:
        raise ConstraintError("the grammar derives no string at all", RECURSION_HINT)
    return prefer_distinct(lambda rng: sampler.sample(rng, depth)[0], count, seed, sampler)


Sample = TypeVar("Sample")


def prefer_distinct(
    draw: Callable[[random.Random], Sample], count: int, seed: int, sampler: "Sampler"
) -> Iterator[Sample]:
    """Yield `count` samples; one is repeated only after `MAX_ATTEMPTS` attempts at a new one.

    After `MAX_TOTAL_STEPS` steps of the sampler, there is only one attempt.
    """
    rng = random.Random(seed)
    seen: set[Sample] = set()
    for _ in range(count):
        for _ in range(MAX_ATTEMPTS):
            sample = draw(rng)
            if sample not in seen or sampler.steps > MAX_TOTAL_STEPS:
                break
        seen.add(sample)
        yield sample


Expansions = Callable[[Goal], list[list[Expansion]]]
"""The expansions of a goal: a list per rule, with one expansion per utterance of the rule."""


def expansions(grammar: SynchronousGrammar) -> Expansions:
    """Return the expansions of nonterminals on both sides together, and on either side alone."""
    together: dict[str, list[list[Expansion]]] = {}
    for rule in grammar.rules:
        if rule.program is not None:
            alternatives = [paired_expansion(pairing, rule.program) for pairing in rule.pairings]
            together.setdefault(rule.name, []).append(alternatives)
    alone = {side: plain_expansions(grammar.side(side), side) for side in ("utterance", "program")}
    return lambda goal: together.get(goal.name, []) if goal.side is None else alone[goal.side](goal)


def plain_expansions(grammar: Grammar, side: Side) -> Expansions:
    """Return the expansions of nonterminals on one side."""

    def expand(goal: Goal) -> list[list[Expansion]]:
        found = []
        for production in grammar.rules.get(goal.name, ()):
            parts: list[Goal | Chars] = []
            pieces = side_pieces(production, {}, side, parts)
            utterance, program = (pieces, ()) if side == "utterance" else ((), pieces)
            found.append([Expansion(tuple(parts), utterance, program)])
        return found

    return expand


def paired_expansion(pairing: Pairing, program: Production) -> Expansion:
    """Return the expansion of a pairing; linked symbols are the same part."""
    parts: list[Goal | Chars] = []
    numbers: dict[int, int] = {}
    for at in dict.fromkeys(link for link in pairing.links if link is not None):
        symbol = pairing.utterance[at]
        assert not isinstance(symbol, Text), "text has no link"
        numbers[at] = len(parts)
        parts.append(symbol if isinstance(symbol, Chars) else Goal(None, symbol.name))
    linked = {at: numbers[link] for at, link in enumerate(pairing.links) if link is not None}
    utterance_pieces = side_pieces(pairing.utterance, numbers, "utterance", parts)
    program_pieces = side_pieces(program, linked, "program", parts)
    return Expansion(tuple(parts), utterance_pieces, program_pieces)


def side_pieces(
    production: Production, linked: Mapping[int, int], side: Side, parts: list[Goal | Chars]
) -> tuple[Piece, ...]:
    """Return a production as text and indices of parts; symbols that are not linked are appended to `parts`."""
    pieces: list[Piece] = []
    for at, symbol in enumerate(production):
        if isinstance(symbol, Text):
            pieces.append(symbol.text)
        elif at in linked:
            pieces.append(linked[at])
        else:
            pieces.append(len(parts))
            parts.append(symbol if isinstance(symbol, Chars) else Goal(side, symbol.name))
    return tuple(pieces)


class Alternatives(NamedTuple):
    """Alternatives ordered by the least height of their derivations, and these heights."""

    options: list["Alternatives | Expansion"]
    heights: list[int]

    @staticmethod
    def of(options: Iterable[tuple[int, "Alternatives | Expansion"]]) -> "Alternatives":
        """Sort alternatives by height, stably."""
        ordered = sorted(options, key=lambda option: option[0])
        return Alternatives([option for _, option in ordered], [height for height, _ in ordered])

    def pick(self, rng: random.Random, depth: int) -> Expansion:
        """Draw one of those that can end within the depth, or of the lowest if there are none."""
        fitting = bisect_right(self.heights, max(depth, self.heights[0]))
        option = self.options[rng.randrange(fitting)]
        return option.pick(rng, depth) if isinstance(option, Alternatives) else option


class SampleNode:
    """A node of a sampled derivation: its expansion, and its parts as nodes and characters."""

    __slots__ = ("expansion", "parts")

    def __init__(self) -> None:
        self.expansion = Expansion((), (), ())
        self.parts: list[SampleNode | str] = []

    def text(self, side: Side) -> str:
        """Return the text of one side, without recursion; raise `LimitExceeded` if it is too long."""
        pieces: list[str] = []
        length = 0
        stack: list[SampleNode | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                pieces.append(node)
                length += len(node)
                if length > MAX_CHARACTERS:
                    message = f"a random sentence has more than {MAX_CHARACTERS:,} characters"
                    raise LimitExceeded(message, "Shorten the repetitions of the grammar.")
                continue
            own = node.expansion.utterance if side == "utterance" else node.expansion.program
            stack += [piece if isinstance(piece, str) else node.parts[piece] for piece in reversed(own)]
        return "".join(pieces)


class Sampler:
    """Draws random derivations of a goal."""

    def __init__(self, expand: Expansions, start: Goal) -> None:
        self.steps = 0
        """The number of nodes of all derivations so far."""
        self._start = start
        self._expansions: dict[Goal, list[list[Expansion]]] = {start: expand(start)}
        self._alternatives: dict[Goal, Alternatives] = {}
        self._characters: dict[Chars, tuple[str, ...] | Chars] = {}
        for goal in (frontier := [start]):
            for part in (
                part for rule in self._expansions[goal] for expansion in rule for part in expansion.parts
            ):
                if isinstance(part, Goal) and part not in self._expansions:
                    self._expansions[part] = expand(part)
                    frontier.append(part)
        self._heights = min_heights(
            (goal, {part for part in expansion.parts if isinstance(part, Goal)})
            for goal, rules in self._expansions.items()
            for rule in rules
            for expansion in rule
            if all(map(is_nonempty, expansion.parts))
        )

    @property
    def min_depth(self) -> int | None:
        """The height of the lowest derivation; None if there is none."""
        return self._heights.get(self._start)

    def _alternatives_of(self, goal: Goal) -> Alternatives:
        if goal not in self._alternatives:
            rules = filter(None, map(self._rank, self._expansions[goal]))
            self._alternatives[goal] = Alternatives.of((rule.heights[0], rule) for rule in rules)
        return self._alternatives[goal]

    def _rank(self, rule: list[Expansion]) -> Alternatives | None:
        """Return the expansions of a rule that have a derivation, ranked; None if there are none."""
        heights = ((height_of(expansion, self._heights), expansion) for expansion in rule)
        ranked = Alternatives.of((height, expansion) for height, expansion in heights if height is not None)
        return ranked if ranked.options else None

    def sample(self, rng: random.Random, depth: int) -> tuple[str, str]:
        """Return the utterance and the program of a random derivation; one is empty for a goal of one side."""
        root = SampleNode()
        agenda = [(self._start, root, depth)]
        steps = 0
        while agenda:
            goal, node, left = agenda.pop()
            steps += 1
            if steps > MAX_STEPS:
                message = f"a random derivation takes more than {MAX_STEPS:,} steps"
                raise LimitExceeded(message, "Even the lowest derivations of this grammar are that large.")
            node.expansion = self._alternatives_of(goal).pick(rng, left if steps < MAX_FREE_STEPS else 0)
            for part in node.expansion.parts:
                if isinstance(part, Goal):
                    inner = SampleNode()
                    node.parts.append(inner)
                    agenda.append((part, inner, left - 1))
                else:
                    node.parts.append(self._character(part, rng))
        self.steps += steps
        return root.text("utterance"), root.text("program")

    def _character(self, chars: Chars, rng: random.Random) -> str:
        """Draw a character of a class, a printable one if it has any."""
        if chars not in self._characters:
            self._characters[chars] = ShortestStrings.of_class(chars) or chars.without_surrogates()
        candidates = self._characters[chars]
        if isinstance(candidates, tuple):
            return candidates[rng.randrange(len(candidates))]
        index = rng.randrange(sum(high - low + 1 for low, high in candidates.ranges))
        for low, high in candidates.ranges:
            if index <= high - low:
                return chr(low + index)
            index -= high - low + 1
        raise AssertionError("the index is within the ranges")


Name = TypeVar("Name", bound=Hashable)


def min_heights(alternatives: Iterable[tuple[Name, Collection[Name]]]) -> dict[Name, int]:
    """Return the height of the lowest derivation of each name that has one.

    `alternatives` are names with the names that one of their expansions needs.
    """
    owners: list[Name] = []
    missing: list[int] = []
    users: dict[Name, list[int]] = {}
    ready: list[Name] = []
    for name, needs in alternatives:
        if not needs:
            ready.append(name)
        for need in needs:
            users.setdefault(need, []).append(len(owners))
        owners.append(name)
        missing.append(len(needs))
    found: dict[Name, int] = {}
    height = 1
    while ready:
        new = [name for name in dict.fromkeys(ready) if name not in found]
        found |= dict.fromkeys(new, height)
        ready = []
        for name in new:
            for user in users.get(name, ()):
                missing[user] -= 1
                if not missing[user]:
                    ready.append(owners[user])
        height += 1
    return found


def min_depth(grammar: Grammar | SynchronousGrammar) -> int | None:
    """Return the height of the lowest derivation of a sentence, or of a pair; None if there is none."""
    if isinstance(grammar, SynchronousGrammar):
        return Sampler(expansions(grammar), Goal(None, grammar.start)).min_depth
    productions = ((name, p) for name, found in grammar.rules.items() for p in found if all(map(is_nonempty, p)))
    needs = ((name, {symbol.name for symbol in p if isinstance(symbol, Ref)}) for name, p in productions)
    return min_heights(needs).get(grammar.start)


def is_nonempty(symbol: Symbol | Goal) -> bool:
    """Return False for a character class without characters, True for any other symbol."""
    return not isinstance(symbol, Chars) or bool(symbol.ranges and symbol.without_surrogates().ranges)


def height_of(expansion: Expansion, heights: Mapping[Goal, int]) -> int | None:
    """Return the least height of a derivation that starts with an expansion; None if there is none."""
    inner = 0
    for part in expansion.parts:
        height = heights.get(part) if isinstance(part, Goal) else 0 if is_nonempty(part) else None
        if height is None:
            return None
        inner = max(inner, height)
    return inner + 1
