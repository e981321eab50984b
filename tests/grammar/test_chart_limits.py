"""The parsers on large, deep and empty inputs: a result or a typed error, within bounds."""

from itertools import islice

import pytest

from fewparse.errors import LimitExceeded
from fewparse.grammar.parsing.chart import Chart, ChartParser, ParseFailure
from fewparse.grammar.parsing.forest import Forest, ForestParser
from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Grammar, Production, Ref, Text
from fewparse.grammar.synchronous import PairedRule, Pairing, SynchronousGrammar
from fewparse.grammar.translation.translator import Translator
from support.campaign import sizes

LEFT = Grammar({"start": ((Ref("start"), Text("a")), (Text("a"),))})
RIGHT = Grammar({"start": ((Text("a"), Ref("start")), (Text("a"),))})


def unit_chain(length: int) -> Grammar:
    """A chain of unit productions."""
    rules: dict[str, tuple[Production, ...]] = {"start": ((Ref("n0"),),), f"n{length}": ((Text("x"),),)}
    return Grammar(rules | {f"n{i}": ((Ref(f"n{i + 1}"),),) for i in range(length)})


def unit_cycle(length: int) -> Grammar:
    """A cycle of unit productions, one of whose members derives a character."""
    rules: dict[str, tuple[Production, ...]] = {f"n{i}": ((Ref(f"n{(i + 1) % length}"),),) for i in range(length)}
    return Grammar(rules | {"start": ((Ref("n0"),),), "n7": (*rules["n7"], (Text("x"),))})


def mirrored(grammar: Grammar) -> SynchronousGrammar:
    """A synchronous grammar with this grammar on both sides."""
    return SynchronousGrammar(
        tuple(
            PairedRule(
                name,
                production,
                (
                    Pairing(
                        production, tuple(at if isinstance(s, Ref) else None for at, s in enumerate(production))
                    ),
                ),
            )
            for name, productions in grammar.rules.items()
            for production in productions
        )
    )


@sizes("length", default=20_000, campaign=100_000)
def test_a_very_long_unit_chain_is_parsed(length: int) -> None:
    forest = ForestParser(unit_chain(length)).parse("x")
    assert isinstance(forest, Forest)
    assert forest.count() == 1
    assert len(list(forest.trees())) == 1


def test_a_long_unit_chain_is_translated_and_learned_from() -> None:
    translator = Translator(mirrored(unit_chain(5_000)))
    assert translator.to_program("x", k=3).texts == ("x",)
    assert translator.with_learned_scorer(["x"]).to_program("x", k=3).texts == ("x",)


def test_a_long_unit_cycle_is_parsed_and_translated() -> None:
    forest = ForestParser(unit_cycle(2_000)).parse("x")
    assert isinstance(forest, Forest)
    assert forest.count() is None
    assert len(list(forest.trees())) == 1
    translation = Translator(mirrored(unit_cycle(2_000))).to_program("x", k=3)
    assert (translation.texts, translation.complete) == (("x",), True)


def test_100_000_alternatives_are_distinguished() -> None:
    parser = ChartParser(Grammar({"start": tuple((Text(f"w{i}"),) for i in range(100_000))}))
    assert parser.accepts("w99999")
    rejected = parser.parse("w100000")
    assert isinstance(rejected, ParseFailure)
    assert rejected.at == 6
    outside = parser.parse("x")
    assert isinstance(outside, ParseFailure)
    assert len(outside.expected) + outside.others == 10  # the others begin with one of w0 to w9


def test_left_recursion_over_ten_thousand_characters_is_parsed() -> None:
    assert ChartParser(LEFT).accepts("a" * 10_000)
    assert Translator(mirrored(LEFT)).to_program("a" * 10_000).best == "a" * 10_000


def test_right_recursion_over_ten_thousand_characters_exceeds_the_limit() -> None:
    with pytest.raises(LimitExceeded, match="more than 2000000 steps to parse"):
        ChartParser(RIGHT).parse("a" * 10_000)


def test_the_limit_error_has_a_position_and_a_hint() -> None:
    with pytest.raises(LimitExceeded, match=r"\(at character \d\d\)") as caught:
        ChartParser(RIGHT, max_steps=1_000).parse("a" * 100)
    assert caught.value.hint is not None
    assert "left recursion" in caught.value.hint


def test_results_stay_the_same_when_cached_states_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = ChartParser(LEFT)
    before = parser.parse("aaa")
    monkeypatch.setattr("fewparse.grammar.parsing.chart.MAX_STATES", 0)
    assert isinstance(before, Chart)
    assert [parser.parse(text) for text in ("aaa", "aab", "aaa")] == [
        before,
        ChartParser(LEFT).parse("aab"),
        before,
    ]


@pytest.mark.parametrize("start", ["start", "nowhere"])
def test_a_grammar_that_derives_nothing_translates_nothing(start: str) -> None:
    loop = PairedRule("start", (Text("a"), Ref("start")), (Pairing((Text("a"), Ref("start")), (None, 1)),))
    translator = Translator(SynchronousGrammar((loop,), start))
    for text in ("", "a"):
        translation = translator.to_program(text)
        assert (translation.best, translation.complete, translation.derivation_count) == (None, True, 0)
        assert translation.error is not None
        assert translator.to_utterance(text).best is None
    assert translator.with_learned_scorer(["a"]).to_program("a").best is None


def test_a_grammar_that_derives_only_on_one_side_reports_it() -> None:
    half = SynchronousGrammar((PairedRule("start", (Ref("nowhere"),), (Pairing((Text("a"),), (None,)),)),))
    assert Translator(half).to_program("a").error == (
        "is derived, but its derivations have no counterpart on the other side"
    )
    assert Translator(half).to_utterance("a").failure == ParseFailure("a", 0, ())


def test_deep_results_have_a_repr() -> None:
    nested = Grammar({"start": ((Text("("), Ref("start"), Text(")")), (Text("x"),))})
    text = "(" * 1_500 + "x" + ")" * 1_500
    assert "k_best=" in repr(Translator(mirrored(nested)).to_program(text))
    forest = ForestParser(nested).parse(text)
    assert isinstance(forest, Forest)
    assert [repr(tree).startswith("Tree(") for tree in islice(forest.trees(), 2)] == [True]


def test_a_too_large_forest_exceeds_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewparse.grammar.parsing.forest.MAX_SIZE", 1_000)
    parser = ForestParser(Grammar({"start": ((Ref("start"), Ref("start")), (Text("a"),))}))
    assert isinstance(parser.parse("a" * 10), Forest)
    with pytest.raises(LimitExceeded, match="too ambiguous"):
        parser.parse("a" * 30)


def test_free_parts_are_bounded() -> None:
    free = read_scfg_text('start -> "a" , /[a-z]/ /[b-z]/ /[c-z]/ /[d-z]/')
    translation = Translator(free).to_program("a", k=3)
    assert translation.best == "abcd"
    assert not translation.complete
