"""The figures of a grammar are those that one finds by counting, and by trying."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings

from fewparse.grammar.analysis.statistics import Line, Named, ambiguity, side_statistics, statistics
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
on_many = settings(max_examples=200)
plain = partial(side_statistics, places={})

Pairs = set[tuple[str, str]]


def closed(pairs: Pairs) -> Pairs:
    """All pairs of names of which the first reaches the second."""
    while True:
        more = pairs | {(a, d) for a, b in pairs for c, d in pairs if b == c}
        if more == pairs:
            return pairs
        pairs = more


def empty_names(grammar: Grammar) -> set[str]:
    """The names that derive the empty string, by asking until nothing is new."""
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


@on_many
@given(plain_grammars())
def test_recursion_cycles_and_empty_names_are_those_that_one_finds_by_trying(grammar: Grammar) -> None:
    useful = trim(grammar).grammar
    empty = empty_names(useful)

    def may_be_empty(symbol: Symbol) -> bool:
        return symbol == Text("") or (isinstance(symbol, Ref) and symbol.name in empty)

    parts: Pairs = set()
    firsts: Pairs = set()
    lasts: Pairs = set()
    alone: Pairs = set()
    for name, production in ((name, p) for name, found in useful.rules.items() for p in found):
        for at, symbol in enumerate(production):
            if isinstance(symbol, Ref):
                before, behind = (all(map(may_be_empty, side)) for side in (production[:at], production[at + 1 :]))
                for pairs, holds in ((parts, True), (firsts, before), (lasts, behind), (alone, before and behind)):
                    pairs |= {(name, symbol.name)} if holds else set()
    inside, left, right, itself = (
        {a for a, b in closed(pairs) if a == b} for pairs in (parts, firsts, lasts, alone)
    )
    found = plain(grammar)
    assert set(found.nullable) == empty
    assert set(found.recursive) == inside
    assert {name for name, kinds in found.recursive.items() if "left" in kinds} == left
    assert {name for name, kinds in found.recursive.items() if "right" in kinds} == right
    assert {name for name, kinds in found.recursive.items() if kinds == ("inner",)} == inside - left - right
    for cycle in found.cycles:
        assert len(set(cycle)) == len(cycle)
        assert all(step in alone for step in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    assert bool(found.cycles) == bool(itself)
    assert {name for cycle in found.cycles for name in cycle} <= itself


@on_many
@given(plain_grammars())
def test_useless_names_are_those_that_one_finds_by_trying(grammar: Grammar) -> None:
    found = plain(grammar)
    known = heights(grammar)
    used = {s.name for productions in grammar.rules.values() for p in productions for s in p if isinstance(s, Ref)}
    assert {name for name, _ in found.undefined} == (used | {grammar.start}) - set(grammar.rules)
    assert {name for name, _ in found.unproductive} == set(grammar.rules) - set(known)
    kept = set(trim(grammar).grammar.rules)
    assert {name for name, _ in found.unreachable} == set(known) - kept
    assert found.least_depth == known.get(grammar.start)


def test_figures_of_a_plain_grammar() -> None:
    grammar = read_grammar(
        'start: "(" start ")" | item "," item | list |\nitem: "(" | /[a-z]/\nlist: list item | item'
    )
    found = statistics(grammar)
    side = found.sides["text"]
    assert (found.rules, found.pairings, found.shared_utterances) == (8, 0, ())
    assert (side.productions, side.names, side.literals, side.classes, side.symbols) == (8, 3, 3, 1, 12)
    assert (side.shortest, side.longest, side.least_depth) == (0, 3, 1)
    assert side.recursive == {"list": ("left",), "start": ("inner",)}
    assert side.nullable == ("start",)
    assert not any((side.cycles, side.undefined, side.unproductive, side.unreachable))


def test_figures_of_both_sides() -> None:
    found = statistics(read_scfg_text(SOURCE, "some.scfg"))
    assert (found.rules, found.pairings, found.least_depth) == (6, 7, 2)
    said, meant = found.sides["utterance"], found.sides["program"]
    assert (said.productions, said.literals, meant.productions, meant.literals) == (6, 5, 6, 7)
    assert said.recursive == {"thing": ("left", "right")}
    assert meant.recursive == {"thing": ("inner",)}


def test_the_same_words_for_different_programs_are_reported() -> None:
    (shared,) = statistics(read_scfg_text(SOURCE, "some.scfg")).shared_utterances
    assert (shared.name, shared.utterance) == ("thing", (Text("things"),))
    assert shared.programs == ((Text("(things)"),), (Text("(everything)"),))
    assert str(shared.place) == "some.scfg:4"


def test_the_same_words_for_the_same_program_otherwise_linked_are_reported() -> None:
    both = (Ref("thing"), Ref("thing"))
    rule = PairedRule("start", both, (Pairing(both, (0, 1)), Pairing(both, (1, 0))))
    thing = PairedRule("thing", (Text("a"),), (Pairing((Text("a"),), (None,)),))
    (shared,) = statistics(SynchronousGrammar((rule, thing))).shared_utterances
    assert shared.programs == (both, both)


def test_what_is_only_said_is_no_second_meaning() -> None:
    grammar = read_scfg_text('start -> "a" , "b"\nstart 1> "a"')
    assert statistics(grammar).shared_utterances == ()


def test_useless_names_have_the_places_where_they_or_their_users_are_defined() -> None:
    sources = [
        ("one.scfg", 'start -> "a" said , "b"\nsaid -> "c" nowhere , "d"\nsaid -> "e" , "f"'),
        ("two.scfg", '\nendless -> "g" endless , "h" endless\nlost -> "i"'),
    ]
    sides = statistics(read_scfg(sources)).sides
    assert sides["utterance"].undefined == (Named("nowhere", Location("one.scfg", 2)),)
    assert sides["program"].undefined == ()
    for side in sides.values():
        assert side.unproductive == (Named("endless", Location("two.scfg", 2)),)
    assert sides["utterance"].unreachable == (Named("lost", Location("two.scfg", 3)),)
    assert sides["program"].unreachable == (
        Named("lost", Location("two.scfg", 3)),
        Named("said", Location("one.scfg", 2)),
    )


def test_a_missing_start_is_undefined_and_has_no_place() -> None:
    found = plain(Grammar({"other": ((Text("a"),),)}))
    assert found.undefined == (Named("start", None),)
    assert found.least_depth is None


def test_a_cycle_is_told_as_the_shortest_way_around() -> None:
    grammar = read_grammar('start: a | "x"\na: maybe b maybe | c\nb: c | a\nc: b "y" | "w"\nmaybe: "z" |')
    assert plain(grammar).cycles == (("a", "b"),)


def test_an_empty_grammar_has_figures_too() -> None:
    found = statistics(Grammar({}))
    assert (found.rules, found.sides["text"].longest, found.least_depth) == (0, 0, None)


def test_ambiguity_of_lines() -> None:
    parser = ForestParser(read_grammar('start: start start | "a" | "b" endless\nendless: endless | "c"'))
    found = ambiguity(parser, ["a", "aaa", "aaaa", "x", "bc"])
    assert [line.derivations for line in found.lines] == [1, 2, 5, 0, None]
    assert found.mean == pytest.approx(8 / 3)
    assert found.most == Line("bc", None)
    assert [line.text for line in found.derived] == ["bc", "aaaa", "aaa", "a"]
    (refused,) = found.refused
    assert refused.text == "x"
    assert "expected" in str(refused.failure)


def test_ambiguity_of_nothing() -> None:
    found = ambiguity(ForestParser(read_grammar('start: "a"')), ["b"])
    assert (found.mean, found.most, found.derived) == (None, None, ())


def test_a_line_that_is_too_much_for_the_parser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = ForestParser(read_grammar('start: start start | "a"'))
    monkeypatch.setattr(parser._parser, "_max_steps", 50)
    assert "steps to parse" in str(ambiguity(parser, ["a" * 50]).lines[0].failure)


def test_a_large_grammar_is_no_problem() -> None:
    size = 20_000
    rules = {f"n{at}": ((Ref(f"n{at + 1}"), Text("x")), (Chars.of([(97, 99)]),)) for at in range(size)}
    found = plain(Grammar({**rules, f"n{size}": ((Ref("n0"),),)}, "n0"))
    assert found.names == len(found.recursive) == size + 1
    ring = plain(Grammar({f"n{at}": ((Ref(f"n{(at + 1) % size}"),), (Text("a"),)) for at in range(size)}, "n0"))
    assert len(ring.cycles[0]) == size


def test_the_calendar_has_nothing_useless_and_nothing_said_twice() -> None:
    path = Path(__file__).parents[2] / "src" / "fewparse" / "domains" / "calendar" / "grammar.scfg"
    found = statistics(read_scfg_text(path.read_text(encoding="utf-8"), path.name))
    for side in found.sides.values():
        assert not any((side.cycles, side.undefined, side.unproductive, side.unreachable))
    assert found.shared_utterances == ()
