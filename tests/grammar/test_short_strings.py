"""The shortest strings of a nonterminal: by length, then by text, up to a fixed number."""

from collections.abc import Iterable
from string import ascii_lowercase

from hypothesis import given

from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Text
from fewparse.grammar.translation.strings import MOST_STRINGS, ShortStrings
from support.earley import Recogniser
from support.enumeration import shortest_strings
from support.random_grammars import NAMES, UNDEFINED, ascii_grammars, examples, heights, plain_grammars
from support.sample_grammars import strings

LETTER = Chars.of([(ord("a"), ord("z"))])
SHORT = list(strings("ab", 5))


def first_strings(*productions: Production, **rules: Iterable[Production]) -> tuple[str, ...]:
    grammar = Grammar({"start": productions} | {name: tuple(others) for name, others in rules.items()})
    return ShortStrings(grammar).of("start")


@given(ascii_grammars)
@examples(150)
def test_the_strings_are_the_shortest_that_the_grammar_accepts(grammar: Grammar) -> None:
    accepted = []
    if grammar.start in heights(grammar):
        accepts = Recogniser(grammar).accepts
        accepted = [text for text in SHORT if accepts(text)]
    found = ShortStrings(grammar).of(grammar.start)
    short = [text for text in found if len(text) <= len(SHORT[-1])]
    assert short == accepted[:MOST_STRINGS]


@given(plain_grammars())
@examples(150)
def test_every_nonterminal_has_the_strings_of_brute_force(grammar: Grammar) -> None:
    expected, ours = shortest_strings(grammar, MOST_STRINGS), ShortStrings(grammar)
    for name in (*NAMES, UNDEFINED):
        assert ours.of(name) == tuple(expected.get(name, ()))


def test_a_class_is_its_printable_characters() -> None:
    assert ShortStrings.of_class(Chars(()).negated()) == tuple(map(chr, range(32, 127)))
    assert ShortStrings.of_class(Chars.of([(ord("é"), ord("é"))])) == ()
    assert ShortStrings.of_class(Chars.of([(0, ord("!"))])) == (" ", "!")


def test_unprintable_characters_of_classes_are_excluded() -> None:
    assert first_strings((Text("a"), Chars.of([(0, 9)])), (Text("b"),)) == ("b",)


def test_literals_may_have_any_characters() -> None:
    assert first_strings((Text("é"),), (Text("😀\n"),)) == ("é", "😀\n")


def test_the_number_of_strings_is_bounded() -> None:
    assert first_strings((Ref("start"), Text("a")), ()) == tuple("a" * length for length in range(MOST_STRINGS))
    assert first_strings((Chars(()).negated(),)) == tuple(map(chr, range(32, 32 + MOST_STRINGS)))


def test_many_slots_are_filled_in_order() -> None:
    found = first_strings((LETTER,) * 3)
    assert found[:27] == (*(f"aa{char}" for char in ascii_lowercase), "aba")
    assert first_strings((Ref("digit"),) * 6, digit=((Text("0"),), (Text("1"),))) == tuple(
        f"{number:06b}" for number in range(MOST_STRINGS)
    )
    assert first_strings((Ref("digit"),) * 15, digit=((Text("0"),), (Text("1"),)))[:3] == (
        "0" * 15,
        "0" * 14 + "1",
        "0" * 13 + "10",
    )


def test_a_string_with_several_derivations_counts_once() -> None:
    assert first_strings((Text("ab"),), (Text("a"), Ref("b")), (Ref("b"),), b=((Text("b"),),)) == ("b", "ab")


def test_unproductive_and_undefined_nonterminals_have_no_strings() -> None:
    assert first_strings((Ref("start"),)) == ()
    assert first_strings(
        (Text("a"), Ref(UNDEFINED)), (Ref("other"),), other=((Ref(UNDEFINED),), (Text("b"),))
    ) == ("b",)
    assert ShortStrings(Grammar({})).of(UNDEFINED) == ()


def test_a_long_unit_chain_is_followed() -> None:
    chain = {f"n{i}": ((Ref(f"n{i + 1}"),),) for i in range(5_000)}
    assert ShortStrings(Grammar(chain | {"n5000": ((Text("x"),),)})).of("n0") == ("x",)
