"""Random plain and synchronous grammars with all difficult features, and random texts for them."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from hypothesis import strategies as st

from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text
from fewparse.grammar.synchronous import PairedRule, Pairing, SynchronousGrammar

ALPHABET = "abé€😀"
"""One to four bytes each."""
NAMES = ("start", "left", "right", "inner")
UNDEFINED = "nowhere"
HEIGHT_BUDGET = 12


seeds = st.integers(0, 2**32).map(random.Random)
letters = st.sampled_from("aaabbé€😀")
names = st.sampled_from([*NAMES[:2], *NAMES[:2], *NAMES, UNDEFINED])
texts = st.text(letters, max_size=2).map(Text)
classes = st.one_of(
    st.lists(letters, max_size=3).map(lambda chars: Chars.of((ord(char), ord(char)) for char in chars)),
    st.just(Chars.of([(ord("a"), ord("é"))])),
    st.just(Chars.of([(ord("a"), ord("a"))]).negated()),
)
symbols = st.one_of(texts, names.map(Ref), names.map(Ref), classes)


def plain_grammars(symbol: st.SearchStrategy[Symbol] = symbols) -> st.SearchStrategy[Grammar]:
    """Grammars with left and right recursion, ambiguity, cycles, and useless and undefined nonterminals."""
    units = names.map(lambda name: (Ref(name),))
    productions = st.one_of(units, st.lists(symbol, max_size=3).map(tuple))
    alternatives = st.lists(productions, min_size=1, max_size=3, unique=True).map(tuple)
    always = dict.fromkeys(NAMES[:2], alternatives)
    return st.fixed_dictionaries(always, optional=dict.fromkeys(NAMES[2:], alternatives)).map(Grammar)


ascii_grammars = plain_grammars(st.one_of(st.text("ab", max_size=2).map(Text), names.map(Ref)))


class Slot(NamedTuple):
    """A symbol of both sides, numbered to distinguish equal symbols."""

    symbol: Ref | Chars
    number: int


Part = Text | Slot
slot_symbols = st.one_of(names.map(Ref), names.map(Ref), st.just(Chars.of([(ord("a"), ord("b"))])))


@st.composite
def paired_rules(draw: st.DrawFn, partnered: bool) -> PairedRule:
    """A program with utterances: other texts, its slots in any order, and slots without partner on either side."""
    name = draw(st.sampled_from(NAMES))
    slots = [Slot(symbol, number) for number, symbol in enumerate(draw(st.lists(slot_symbols, max_size=2)))]
    unpartnered = st.lists(slot_symbols, max_size=0 if partnered else 1)
    extra = [Slot(symbol, 10) for symbol in draw(unpartnered)]
    program = between_texts(draw, [*slots, *extra])
    pairings = []
    for _ in range(draw(st.integers(1, 2))):
        ordered = draw(st.permutations(slots))
        if not partnered and draw(st.integers(0, 3)) == 0:
            ordered = ordered[1:]
        utterance = between_texts(draw, [*ordered, *(Slot(symbol, 20) for symbol in draw(unpartnered))])
        indices = {part: at for at, part in enumerate(utterance) if isinstance(part, Slot)}
        links = tuple(indices.get(part) if isinstance(part, Slot) else None for part in program)
        pairings.append(Pairing(produced(utterance), links))
    utterance_only = not partnered and draw(st.integers(0, 9)) == 0
    if utterance_only:
        return PairedRule(name, None, tuple(dict.fromkeys(Pairing(p.utterance, ()) for p in pairings)))
    return PairedRule(name, produced(program), tuple(dict.fromkeys(pairings)))


def between_texts(draw: st.DrawFn, slots: list[Slot]) -> list[Part]:
    parts: list[Part] = []
    for slot in slots:
        parts += [*draw(st.lists(texts, max_size=1)), slot]
    return [*parts, *draw(st.lists(texts, max_size=1))]


def produced(parts: list[Part]) -> Production:
    return tuple(part.symbol if isinstance(part, Slot) else part for part in parts)


def leaf_rules(name: str) -> st.SearchStrategy[PairedRule]:
    """A rule that ends a derivation."""
    return st.tuples(texts, texts).map(lambda ends: PairedRule(name, ends[:1], (Pairing(ends[1:], (None,)),)))


def synchronous_grammars(partnered: bool = False) -> st.SearchStrategy[SynchronousGrammar]:
    """Grammars with reordering, repeated symbols, several utterances of a program and the reverse."""
    leaves = st.lists(st.sampled_from(NAMES).flatmap(leaf_rules), min_size=1, max_size=5)
    built = st.tuples(st.lists(paired_rules(partnered), min_size=1, max_size=5), leaves)
    ours = built.map(lambda rules: SynchronousGrammar(grouped([*rules[0], *rules[1]])))
    return ours if partnered else st.one_of(ours, ours, scfg_sources().map(read_scfg_text))


def grouped(rules: list[PairedRule]) -> tuple[PairedRule, ...]:
    """Group the pairings of the same program, as the grammar reader does."""
    groups: dict[tuple[str, Production | None], dict[Pairing, None]] = {}
    for rule in rules:
        groups.setdefault((rule.name, rule.program), {}).update(dict.fromkeys(rule.pairings))
    return tuple(PairedRule(name, program, tuple(pairings)) for (name, program), pairings in groups.items())


@st.composite
def scfg_sources(draw: st.DrawFn) -> str:
    """Sources with mirrored and utterance-only rules, macros that use their parameter twice, and optionals."""
    written = st.sampled_from(['"a"', '"b"', '""', "#e", "/[ab]/", '"é"', *NAMES, *NAMES, f'"b"? {UNDEFINED}'])
    utterances = st.lists(st.one_of(written, st.sampled_from(['"a"?', "inner?"])), min_size=1, max_size=3).map(
        " ".join
    )
    programs = st.one_of(utterances, st.sampled_from(["twice(inner)", 'twice("a") right', "inner right"]))
    lines = ['twice(x) 2> x "+" x', 'start -> inner right , right "/" inner', 'inner -> "a" , "x"']
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=4)):
        kind = draw(st.integers(0, 3))
        alternatives = " | ".join(draw(st.lists(utterances, min_size=1, max_size=2)))
        other = f"{name} -> {draw(utterances)}" if kind == 0 else f"{name} 1> {alternatives}"
        lines.append(f"{name} -> {alternatives} , {draw(programs)}" if kind > 1 else other)
    return "\n".join([*lines, 'right -> "b" | #e , "y"'])


Heights = Mapping[str, int]


def heights(grammar: Grammar) -> dict[str, int]:
    """The height of the lowest derivation of each productive nonterminal."""
    found: dict[str, int] = {}
    while True:
        new = {
            name: min(
                (1 + height(p, found) for p in productions if height(p, found) >= 0),
                default=-1,
            )
            for name, productions in grammar.rules.items()
        }
        new = {name: number for name, number in new.items() if number > 0}
        if new == found:
            return found
        found = new


def height(production: Production, known: Heights) -> int:
    """The height of the highest symbol; -1 if one of them is unproductive."""
    each = [known.get(s.name, -1) if isinstance(s, Ref) else (-1 if s == Chars(()) else 0) for s in production]
    return -1 if -1 in each else max(each, default=0)


def sampler(grammar: Grammar) -> Callable[[random.Random], str] | None:
    """A function that samples sentences; None if there are none."""
    known = heights(grammar)

    def sample(symbol: Symbol, rng: random.Random, budget: int) -> str:
        if isinstance(symbol, Text):
            return symbol.text
        if isinstance(symbol, Chars):
            likely = [char for char in ALPHABET if char in symbol]
            return rng.choice(likely) if likely else chr(symbol.ranges[0][0])
        possible = [p for p in grammar.rules[symbol.name] if height(p, known) >= 0]
        lowest = min(height(p, known) for p in possible)
        chosen = rng.choice([p for p in possible if height(p, known) <= max(lowest, budget)])
        return "".join(sample(part, rng, budget // 2) for part in chosen)

    return (lambda rng: sample(Ref(grammar.start), rng, HEIGHT_BUDGET)) if grammar.start in known else None


def mutated(text: str, rng: random.Random) -> str:
    """The text with a character deleted, inserted or replaced."""
    at, char = rng.randrange(len(text) + 1), rng.choice(ALPHABET)
    return rng.choice(
        [text[:at] + text[at + 1 :], text[:at] + char + text[at:], text[:at] + char + text[at + 1 :]]
    )


def candidates(grammar: Grammar, rng: random.Random, count: int = 6, max_length: int = 24) -> Iterator[str]:
    """Sentences, and mutated sentences."""
    sample = sampler(grammar)
    for _ in range(count):
        sentence = sample(rng)[:max_length] if sample else "".join(rng.choices(ALPHABET, k=rng.randrange(4)))
        yield from (sentence, mutated(sentence, rng), mutated(mutated(sentence, rng), rng))
