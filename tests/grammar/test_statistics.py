"""The statistics of a grammar match those of brute force and of hand counts."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings

from fewparse.grammar.analysis.statistics import Line, LocatedName, ambiguity, side_statistics, statistics
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.readers.scfg import read_scfg, read_scfg_text
from fewparse.grammar.rules import Chars, Grammar, Ref, Symbol, Text, trim
from fewparse.grammar.synchronous import Location, PairedRule, Pairing, SynchronousGrammar
from support.random_grammars import heights, plain_grammars

SOURCE = """
start -> "show " thing , "(show " thing ")"
start -> "list " thing | "show all " thing , "(list " thing ")"
thing -> "things" , "(things)"
thing -> "things" , "(everything)"
thing -> thing " and " thing , "(and " thing " " thing ")"
thing -> /[a-z]/ , /[a-z]/
"""
many_examples = settings(max_examples=200)
plain = partial(side_statistics, locations={})

Pairs = set[tuple[str, str]]


def transitive_closure(pairs: Pairs) -> Pairs:
    """All pairs of names such that the first reaches the second."""
    while True:
        more = pairs | {(a, d) for a, b in pairs for c, d in pairs if b == c}
        if more == pairs:
            return pairs
        pairs = more


def nullable_names(grammar: Grammar) -> set[str]:
    """The names that derive the empty string, by fixed-point iteration."""
    found: set[str] = set()
    while True:
        new = {
            name
            for name, productions in grammar.rules.items()
            if any(all(s == Text("") or (isinstance(s, Ref) and s.name in found) for s in p) for p in productions)
        }
        if new == found:
            return found
        found = new


@many_examples
@given(plain_grammars())
def test_recursion_cycles_and_nullable_names_match_brute_force(grammar: Grammar) -> None:
    useful = trim(grammar).grammar
    nullable = nullable_names(useful)

    def is_nullable(symbol: Symbol) -> bool:
        return symbol == Text("") or (isinstance(symbol, Ref) and symbol.name in nullable)

    parts: Pairs = set()
    firsts: Pairs = set()
    lasts: Pairs = set()
    alone: Pairs = set()
    for name, production in ((name, p) for name, found in useful.rules.items() for p in found):
        for at, symbol in enumerate(production):
            if isinstance(symbol, Ref):
                before, after = (all(map(is_nullable, side)) for side in (production[:at], production[at + 1 :]))
                for pairs, holds in ((parts, True), (firsts, before), (lasts, after), (alone, before and after)):
                    pairs |= {(name, symbol.name)} if holds else set()
    inside, left, right, itself = (
        {a for a, b in transitive_closure(pairs) if a == b} for pairs in (parts, firsts, lasts, alone)
    )
    found = plain(grammar)
    assert set(found.nullable) == nullable
    assert set(found.recursive) == inside
    assert {name for name, kinds in found.recursive.items() if "left" in kinds} == left
    assert {name for name, kinds in found.recursive.items() if "right" in kinds} == right
    assert {name for name, kinds in found.recursive.items() if kinds == ("inner",)} == inside - left - right
    for cycle in found.cycles:
        assert len(set(cycle)) == len(cycle)
        assert all(step in alone for step in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    assert bool(found.cycles) == bool(itself)
    assert {name for cycle in found.cycles for name in cycle} <= itself


@many_examples
@given(plain_grammars())
def test_useless_names_match_brute_force(grammar: Grammar) -> None:
    found = plain(grammar)
    known = heights(grammar)
    used = {s.name for productions in grammar.rules.values() for p in productions for s in p if isinstance(s, Ref)}
    assert {name for name, _ in found.undefined} == (used | {grammar.start}) - set(grammar.rules)
    assert {name for name, _ in found.unproductive} == set(grammar.rules) - set(known)
    kept = set(trim(grammar).grammar.rules)
    assert {name for name, _ in found.unreachable} == set(known) - kept
    assert found.min_depth == known.get(grammar.start)


def test_statistics_of_a_plain_grammar() -> None:
    grammar = read_grammar(
        'start: "(" start ")" | item "," item | list |\nitem: "(" | /[a-z]/\nlist: list item | item'
    )
    found = statistics(grammar)
    side = found.sides["text"]
    assert (found.rules, found.pairings, found.shared_utterances) == (8, 0, ())
    assert (side.productions, side.names, side.literals, side.classes, side.symbols) == (8, 3, 3, 1, 12)
    assert (side.min_symbols, side.max_symbols, side.min_depth) == (0, 3, 1)
    assert side.recursive == {"list": ("left",), "start": ("inner",)}
    assert side.nullable == ("start",)
    assert not any((side.cycles, side.undefined, side.unproductive, side.unreachable))


def test_statistics_of_both_sides() -> None:
    found = statistics(read_scfg_text(SOURCE, "some.scfg"))
    assert (found.rules, found.pairings, found.min_depth) == (6, 7, 2)
    utterance, program = found.sides["utterance"], found.sides["program"]
    assert (utterance.productions, utterance.literals) == (6, 5)
    assert (program.productions, program.literals) == (6, 7)
    assert utterance.recursive == {"thing": ("left", "right")}
    assert program.recursive == {"thing": ("inner",)}


def test_an_utterance_with_different_programs_is_reported() -> None:
    (shared,) = statistics(read_scfg_text(SOURCE, "some.scfg")).shared_utterances
    assert (shared.name, shared.utterance) == ("thing", (Text("things"),))
    assert shared.programs == ((Text("(things)"),), (Text("(everything)"),))
    assert str(shared.location) == "some.scfg:4"


def test_an_utterance_with_different_links_to_a_program_is_reported() -> None:
    both = (Ref("thing"), Ref("thing"))
    rule = PairedRule("start", both, (Pairing(both, (0, 1)), Pairing(both, (1, 0))))
    thing = PairedRule("thing", (Text("a"),), (Pairing((Text("a"),), (None,)),))
    (shared,) = statistics(SynchronousGrammar((rule, thing))).shared_utterances
    assert shared.programs == (both, both)


def test_a_rule_of_the_utterance_side_alone_is_not_a_second_program() -> None:
    grammar = read_scfg_text('start -> "a" , "b"\nstart 1> "a"')
    assert statistics(grammar).shared_utterances == ()


def test_useless_names_have_the_location_of_their_definition_or_first_user() -> None:
    sources = [
        ("one.scfg", 'start -> "a" word , "b"\nword -> "c" missing , "d"\nword -> "e" , "f"'),
        ("two.scfg", '\nendless -> "g" endless , "h" endless\nlost -> "i"'),
    ]
    sides = statistics(read_scfg(sources)).sides
    assert sides["utterance"].undefined == (LocatedName("missing", Location("one.scfg", 2)),)
    assert sides["program"].undefined == ()
    for side in sides.values():
        assert side.unproductive == (LocatedName("endless", Location("two.scfg", 2)),)
    assert sides["utterance"].unreachable == (LocatedName("lost", Location("two.scfg", 3)),)
    assert sides["program"].unreachable == (
        LocatedName("lost", Location("two.scfg", 3)),
        LocatedName("word", Location("one.scfg", 2)),
    )


def test_a_missing_start_is_undefined_and_has_no_location() -> None:
    found = plain(Grammar({"other": ((Text("a"),),)}))
    assert found.undefined == (LocatedName("start", None),)
    assert found.min_depth is None


def test_the_shortest_cycle_is_reported() -> None:
    grammar = read_grammar('start: a | "x"\na: maybe b maybe | c\nb: c | a\nc: b "y" | "w"\nmaybe: "z" |')
    assert plain(grammar).cycles == (("a", "b"),)


def test_statistics_of_an_empty_grammar() -> None:
    found = statistics(Grammar({}))
    assert (found.rules, found.sides["text"].max_symbols, found.min_depth) == (0, 0, None)


def test_ambiguity_of_lines() -> None:
    parser = ForestParser(read_grammar('start: start start | "a" | "b" endless\nendless: endless | "c"'))
    found = ambiguity(parser, ["a", "aaa", "aaaa", "x", "bc"])
    assert [line.derivations for line in found.lines] == [1, 2, 5, 0, None]
    assert found.mean_derivations == pytest.approx(8 / 3)
    assert found.most_ambiguous == Line("bc", None)
    assert [line.text for line in found.derived] == ["bc", "aaaa", "aaa", "a"]
    (rejected,) = found.rejected
    assert rejected.text == "x"
    assert "expected" in str(rejected.failure)


def test_ambiguity_without_derived_lines() -> None:
    found = ambiguity(ForestParser(read_grammar('start: "a"')), ["b"])
    assert (found.mean_derivations, found.most_ambiguous, found.derived) == (None, None, ())


def test_a_line_beyond_the_limits_of_the_parser_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = ForestParser(read_grammar('start: start start | "a"'))
    monkeypatch.setattr(parser._parser, "_max_steps", 50)
    assert "steps to parse" in str(ambiguity(parser, ["a" * 50]).lines[0].failure)


def test_statistics_of_a_large_grammar() -> None:
    size = 20_000
    rules = {f"n{at}": ((Ref(f"n{at + 1}"), Text("x")), (Chars.of([(97, 99)]),)) for at in range(size)}
    found = plain(Grammar({**rules, f"n{size}": ((Ref("n0"),),)}, "n0"))
    assert found.names == len(found.recursive) == size + 1
    ring = plain(Grammar({f"n{at}": ((Ref(f"n{(at + 1) % size}"),), (Text("a"),)) for at in range(size)}, "n0"))
    assert len(ring.cycles[0]) == size


def test_the_calendar_has_no_useless_names_and_no_shared_utterances() -> None:
    path = Path(__file__).parents[2] / "src" / "fewparse" / "domains" / "calendar" / "grammar.scfg"
    found = statistics(read_scfg_text(path.read_text(encoding="utf-8"), path.name))
    for side in found.sides.values():
        assert not any((side.cycles, side.undefined, side.unproductive, side.unreachable))
    assert found.shared_utterances == ()
