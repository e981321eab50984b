"""The Earley oracle of the other tests, checked against Lark and the definition of UTF-8."""

import random

import pytest

from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.rules import Chars, Grammar, Ref, Text
from support.earley import Recogniser, characters
from support.sample_grammars import ALPHABETS, CALENDAR, SAMPLES, lark_language, length_within, strings


@pytest.mark.parametrize("name", SAMPLES)
def test_accepts_exactly_what_lark_accepts(name: str) -> None:
    ours, lark = Recogniser(read_grammar(SAMPLES[name])), lark_language(SAMPLES[name])
    candidates = list(strings(ALPHABETS[name], length_within(ALPHABETS[name], 1_000)))
    verdicts = {text: lark(text) for text in candidates}
    assert {text: ours.accepts(text) for text in candidates} == verdicts
    assert len(set(verdicts.values())) == 2, "the strings should include sentences and others"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_prefix_is_viable_iff_some_sentence_begins_with_it(name: str) -> None:
    alphabet = ALPHABETS[name] + '12zZ"'
    ours, lark = Recogniser(read_grammar(SAMPLES[name])), lark_language(SAMPLES[name])
    for sentence in filter(lark, strings(ALPHABETS[name], length_within(ALPHABETS[name], 1_000))):
        encoded = sentence.encode()
        assert all(ours.viable(encoded[:i]) for i in range(len(encoded) + 1))
    for prefix in strings(ALPHABETS[name], 2):
        if ours.viable(prefix.encode()):
            assert lark(shortest_completion(ours, prefix, alphabet))


def shortest_completion(recogniser: Recogniser, prefix: str, alphabet: str) -> str:
    """A sentence that begins with a viable prefix, by breadth-first search."""
    frontier, seen = [prefix], set()
    for text in frontier:
        row = recogniser.row(text.encode())
        if row is not None and row.accepts:
            return text
        if row is not None and row not in seen:
            seen.add(row)
            frontier += [text + char for char in alphabet]
    raise AssertionError(f"{prefix!r} is reported as viable, but no sentence begins with it")


def test_accepts_what_lark_accepts_of_mutated_calendar_programs() -> None:
    ours, lark = Recogniser(read_grammar(CALENDAR)), lark_language(CALENDAR)
    programs = [
        '(create "Lunch, at 1?" (with Anna (team sales)) (on Monday) (at 12:30pm) (for (hours 1)) (in Atlas))',
        "(list (meetings (by me) (on February-28) (after 9am) (before noon) (in online)))",
        "(free Anna Ben (on last-Friday) (after 10am) (for (minutes 45)))",
        "(count (rooms (at-least 12) (floor 3) (has video) (free (at 1pm))))",
    ]
    rng, verdicts = random.Random(1), []
    for program in programs:
        assert ours.accepts(program)
        for _ in range(60):
            i, j = sorted(rng.sample(range(len(program)), 2))
            mutated = rng.choice([program[:i] + program[i + 1 :], program[:i] + program[j:], program[i:j]])
            if rng.random() < 0.5:
                mutated = program[:i] + rng.choice("13a)( ") + program[i + 1 :]
            verdicts.append(lark(mutated))
            assert ours.accepts(mutated) == verdicts[-1], mutated
    assert any(verdicts)
    assert not all(verdicts)


def test_unproductive_rules_are_ignored() -> None:
    grammar = Grammar(
        {"start": ((Text("a"), Ref("loop")), (Text("b"),), (Chars(()),)), "loop": ((Text("c"), Ref("loop")),)}
    )
    assert not Recogniser(grammar).viable(b"a")
    assert Recogniser(grammar).accepts("b")


def test_characters_of_a_byte_prefix() -> None:
    rng = random.Random(2)
    for char in [*map(chr, range(0x900)), *(chr(rng.choice([0xFFFF, 0x10000, 0x10FFFF])) for _ in range(9)), "€"]:
        encoded = char.encode()
        for i in range(1, len(encoded) + 1):
            low, high, missing = characters(encoded[:i])
            assert low <= ord(char) <= high
            assert missing == len(encoded) - i
            assert chr(low).encode()[:i] == chr(high).encode()[:i] == encoded[:i]


def test_no_character_begins_with_broken_utf8() -> None:
    for broken in [
        b"\x80",
        b"\xc0",
        b"\xc1",
        b"\xc3a",
        b"\xe0\x80",
        b"\xed\xa0",
        b"\xf0\x80",
        b"\xf4\x90",
        b"\xf8",
        b"\xff",
    ]:
        assert characters(broken)[:2] == (0, -1), broken
