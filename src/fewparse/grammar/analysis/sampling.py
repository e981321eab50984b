"""Random sentences of a grammar, and random pairs of an utterance and its program; the same for the same seed."""

import random
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from fewparse.errors import ConstraintError, LimitExceeded
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text
from fewparse.grammar.synchronous import Pairing, Side, SynchronousGrammar
from fewparse.grammar.translation.strings import ShortStrings

DEPTH = 12
MANY_STEPS = 1_000
MOST_STEPS = 200_000
ATTEMPTS = 20
"""How often something new is looked for before something is said again."""
NO_END = "Is a rule missing its end of recursion?"


class Pair(NamedTuple):
    """An utterance and a program that are derived together."""

    utterance: str
    program: str


class Key(NamedTuple):
    """A name to be derived: on one side, or on both together."""

    side: Side | None
    name: str


Piece = str | int
"""Text, or the number of a part."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """One way to derive a key: the parts to be derived, and where the two sides have them."""

    parts: tuple[Key | Chars, ...]
    utterance: tuple[Piece, ...]
    program: tuple[Piece, ...]


def render(grammar: SynchronousGrammar, count: int, seed: int, depth: int = DEPTH) -> Iterator[Pair]:
    """Random pairs that the grammar derives, as many as asked for; new ones as long as they are easily found.

    Rules are equally likely, and so are the ways to say one, as far as they can end within `depth`; beyond it, and
    once a derivation has become large, what ends soonest is taken.
    """
    sampler = Sampler(expansions(grammar), Key(None, grammar.start))
    if sampler.least_depth is None:
        raise ConstraintError("the grammar derives no utterance together with a program", NO_END)
    return distinct_first(lambda rng: Pair(*sampler.sample(rng, depth)), count, seed)


def render_side(grammar: Grammar, count: int, seed: int, depth: int = DEPTH) -> Iterator[str]:
    """Random sentences of a plain grammar."""
    sampler = Sampler(plain_expansions(grammar, "utterance"), Key("utterance", grammar.start))
    if sampler.least_depth is None:
        raise ConstraintError("the grammar derives no string at all", NO_END)
    return distinct_first(lambda rng: sampler.sample(rng, depth)[0], count, seed)


Sample = TypeVar("Sample")


def distinct_first(draw: Callable[[random.Random], Sample], count: int, seed: int) -> Iterator[Sample]:
    """So many samples; one that is there already only after several attempts at another."""
    rng = random.Random(seed)
    seen: set[Sample] = set()
    for _ in range(count):
        for _ in range(ATTEMPTS):
            sample = draw(rng)
            if sample not in seen:
                break
        seen.add(sample)
        yield sample


Expansions = Callable[[Key], list[list[Expansion]]]
"""The ways to derive a key: rules, and for each of them the ways to say it."""


def expansions(grammar: SynchronousGrammar) -> Expansions:
    """The ways to derive names on both sides together, and on either side alone."""
    together: dict[str, list[list[Expansion]]] = {}
    for rule in grammar.rules:
        if rule.program is not None:
            ways = [paired(pairing, rule.program) for pairing in rule.pairings]
            together.setdefault(rule.name, []).append(ways)
    alone = {side: plain_expansions(grammar.side(side), side) for side in ("utterance", "program")}
    return lambda key: together.get(key.name, []) if key.side is None else alone[key.side](key)


def plain_expansions(grammar: Grammar, side: Side) -> Expansions:
    """The ways to derive names on one side."""

    def expand(key: Key) -> list[list[Expansion]]:
        found = []
        for production in grammar.rules.get(key.name, ()):
            parts: list[Key | Chars] = []
            pieces = placed(production, {}, side, parts)
            said, meant = (pieces, ()) if side == "utterance" else ((), pieces)
            found.append([Expansion(tuple(parts), said, meant)])
        return found

    return expand


def paired(pairing: Pairing, program: Production) -> Expansion:
    """One way to say a program: partners are one part."""
    parts: list[Key | Chars] = []
    numbers: dict[int, int] = {}
    for at in dict.fromkeys(said for said in pairing.links if said is not None):
        symbol = pairing.utterance[at]
        assert not isinstance(symbol, Text), "text has no partner"
        numbers[at] = len(parts)
        parts.append(symbol if isinstance(symbol, Chars) else Key(None, symbol.name))
    partners = {at: numbers[said] for at, said in enumerate(pairing.links) if said is not None}
    said = placed(pairing.utterance, numbers, "utterance", parts)
    meant = placed(program, partners, "program", parts)
    return Expansion(tuple(parts), said, meant)


def placed(
    production: Production, known: Mapping[int, int], side: Side, parts: list[Key | Chars]
) -> tuple[Piece, ...]:
    """A side as text and numbers of parts; symbols that are no known part are added to the parts."""
    pieces: list[Piece] = []
    for at, symbol in enumerate(production):
        if isinstance(symbol, Text):
            pieces.append(symbol.text)
        elif at in known:
            pieces.append(known[at])
        else:
            pieces.append(len(parts))
            parts.append(symbol if isinstance(symbol, Chars) else Key(side, symbol.name))
    return tuple(pieces)


class Ranked(NamedTuple):
    """Alternatives, those that can end soonest first, and the least height of each."""

    options: list["Ranked | Expansion"]
    heights: list[int]

    @staticmethod
    def of(options: Iterable[tuple[int, "Ranked | Expansion"]]) -> "Ranked":
        """Alternatives that are equally high keep their order."""
        ordered = sorted(options, key=lambda option: option[0])
        return Ranked([option for _, option in ordered], [height for height, _ in ordered])

    def pick(self, rng: random.Random, depth: int) -> Expansion:
        """One of those that end within the depth, or of those that end soonest."""
        fitting = bisect_right(self.heights, max(depth, self.heights[0]))
        chosen = self.options[rng.randrange(fitting)]
        return chosen.pick(rng, depth) if isinstance(chosen, Ranked) else chosen


class Derived:
    """What a key has become: its two sides, in which numbers stand for the parts."""

    __slots__ = ("expansion", "parts")

    def __init__(self) -> None:
        self.expansion = Expansion((), (), ())
        self.parts: list[Derived | str] = []

    def text(self, side: Side) -> str:
        """One side, without recursion."""
        pieces: list[str] = []
        stack: list[Derived | str] = [self]
        while stack:
            derived = stack.pop()
            if isinstance(derived, str):
                pieces.append(derived)
                continue
            own = derived.expansion.utterance if side == "utterance" else derived.expansion.program
            stack += [piece if isinstance(piece, str) else derived.parts[piece] for piece in reversed(own)]
        return "".join(pieces)


class Sampler:
    """Draws derivations of one key."""

    def __init__(self, expand: Expansions, start: Key) -> None:
        self._start = start
        self._ways: dict[Key, list[list[Expansion]]] = {start: expand(start)}
        self._rankings: dict[Key, Ranked] = {}
        self._characters: dict[Chars, tuple[str, ...] | Chars] = {}
        for key in (frontier := [start]):
            for part in (part for rule in self._ways[key] for way in rule for part in way.parts):
                if isinstance(part, Key) and part not in self._ways:
                    self._ways[part] = expand(part)
                    frontier.append(part)
        self._heights = least_heights(
            (key, {part for part in way.parts if isinstance(part, Key)})
            for key, rules in self._ways.items()
            for rule in rules
            for way in rule
            if all(map(is_possible, way.parts))
        )

    @property
    def least_depth(self) -> int | None:
        """The height of the lowest derivation; None if there is none."""
        return self._heights.get(self._start)

    def _ranking(self, key: Key) -> Ranked:
        if key not in self._rankings:
            rules = filter(None, map(self._ranked, self._ways[key]))
            self._rankings[key] = Ranked.of((rule.heights[0], rule) for rule in rules)
        return self._rankings[key]

    def _ranked(self, ways: list[Expansion]) -> Ranked | None:
        heights = ((height_of(way, self._heights), way) for way in ways)
        ranked = Ranked.of((height, way) for height, way in heights if height is not None)
        return ranked if ranked.options else None

    def sample(self, rng: random.Random, depth: int) -> tuple[str, str]:
        """The two sides of a random derivation, of which one may be empty."""
        root = Derived()
        open_parts = [(self._start, root, depth)]
        steps = 0
        while open_parts:
            key, derived, left = open_parts.pop()
            steps += 1
            if steps > MOST_STEPS:
                message = f"a random derivation takes more than {MOST_STEPS:,} steps"
                raise LimitExceeded(message, "Even those that end soonest are that large.")
            derived.expansion = self._ranking(key).pick(rng, left if steps < MANY_STEPS else 0)
            for part in derived.expansion.parts:
                if isinstance(part, Key):
                    inner = Derived()
                    derived.parts.append(inner)
                    open_parts.append((part, inner, left - 1))
                else:
                    derived.parts.append(self._character(part, rng))
        return root.text("utterance"), root.text("program")

    def _character(self, chars: Chars, rng: random.Random) -> str:
        """A printable one where there is one."""
        if chars not in self._characters:
            self._characters[chars] = ShortStrings.of_class(chars) or chars.without_surrogates()
        known = self._characters[chars]
        if isinstance(known, tuple):
            return known[rng.randrange(len(known))]
        index = rng.randrange(sum(high - low + 1 for low, high in known.ranges))
        for low, high in known.ranges:
            if index <= high - low:
                return chr(low + index)
            index -= high - low + 1
        raise AssertionError("the index is within the ranges")


Name = TypeVar("Name", bound=Hashable)


def least_heights(ways: Iterable[tuple[Name, Collection[Name]]]) -> dict[Name, int]:
    """The height of the lowest derivation of each name that has one; `ways` says which names each way needs."""
    owners: list[Name] = []
    missing: list[int] = []
    users: dict[Name, list[int]] = {}
    ready: list[Name] = []
    for name, needs in ways:
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


def least_depth(grammar: Grammar | SynchronousGrammar) -> int | None:
    """The height of the lowest derivation of a sentence, or of a pair; None if there is none."""
    if isinstance(grammar, SynchronousGrammar):
        return Sampler(expansions(grammar), Key(None, grammar.start)).least_depth
    productions = ((name, p) for name, found in grammar.rules.items() for p in found if all(map(is_possible, p)))
    needs = ((name, {symbol.name for symbol in p if isinstance(symbol, Ref)}) for name, p in productions)
    return least_heights(needs).get(grammar.start)


def is_possible(symbol: Symbol | Key) -> bool:
    """Whether a symbol can be anything as far as itself says."""
    return not isinstance(symbol, Chars) or bool(symbol.ranges and symbol.without_surrogates().ranges)


def height_of(expansion: Expansion, heights: Mapping[Key, int]) -> int | None:
    """The least height of a derivation that begins so; None if there is none."""
    inner = 0
    for part in expansion.parts:
        height = heights.get(part) if isinstance(part, Key) else 0 if is_possible(part) else None
        if height is None:
            return None
        inner = max(inner, height)
    return inner + 1
