"""The shortest strings of a nonterminal: ordered by length, then by text, up to a fixed number."""

from collections.abc import Iterable
from string import ascii_lowercase

from hypothesis import given

from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Text
from fewparse.grammar.translation.shortest_strings import MAX_STRINGS, ShortestStrings
from support.campaign import examples
from support.earley import Recogniser
from support.enumeration import shortest_strings
from support.random_grammars import NAMES, UNDEFINED, ascii_grammars, heights, plain_grammars
from support.sample_grammars import strings

LETTER = Chars.of([(ord("a"), ord("z"))])
SHORT = list(strings("ab", 5))


def strings_of_start(*productions: Production, **rules: Iterable[Production]) -> tuple[str, ...]:
    grammar = Grammar({"start": productions} | {name: tuple(others) for name, others in rules.items()})
    return ShortestStrings(grammar).of("start")


@given(ascii_grammars)
@examples(150)
def test_the_strings_are_the_shortest_that_the_grammar_accepts(grammar: Grammar) -> None:
    accepted = []
    if grammar.start in heights(grammar):
        accepts = Recogniser(grammar).accepts
        accepted = [text for text in SHORT if accepts(text)]
    found = ShortestStrings(grammar).of(grammar.start)
    short = [text for text in found if len(text) <= len(SHORT[-1])]
    assert short == accepted[:MAX_STRINGS]


@given(plain_grammars())
@examples(150)
def test_the_strings_of_every_nonterminal_match_brute_force(grammar: Grammar) -> None:
    expected, actual = shortest_strings(grammar, MAX_STRINGS), ShortestStrings(grammar)
    for name in (*NAMES, UNDEFINED):
        assert actual.of(name) == tuple(expected.get(name, ()))


def test_the_strings_of_a_class_are_its_printable_characters() -> None:
    assert ShortestStrings.of_class(Chars(()).negated()) == tuple(map(chr, range(32, 127)))
    assert ShortestStrings.of_class(Chars.of([(ord("é"), ord("é"))])) == ()
    assert ShortestStrings.of_class(Chars.of([(0, ord("!"))])) == (" ", "!")


def test_characters_that_are_not_printable_have_no_string() -> None:
    assert strings_of_start((Text("a"), Chars.of([(0, 9)])), (Text("b"),)) == ("b",)


def test_text_may_be_any_unicode() -> None:
    assert strings_of_start((Text("é"),), (Text("😀\n"),)) == ("é", "😀\n")


def test_the_number_of_strings_is_limited() -> None:
    assert strings_of_start((Ref("start"), Text("a")), ()) == tuple("a" * length for length in range(MAX_STRINGS))
    assert strings_of_start((Chars(()).negated(),)) == tuple(map(chr, range(32, 32 + MAX_STRINGS)))


def test_several_symbols_are_combined_in_order() -> None:
    found = strings_of_start((LETTER,) * 3)
    assert found[:27] == (*(f"aa{char}" for char in ascii_lowercase), "aba")
    assert strings_of_start((Ref("digit"),) * 6, digit=((Text("0"),), (Text("1"),))) == tuple(
        f"{number:06b}" for number in range(MAX_STRINGS)
    )
    assert strings_of_start((Ref("digit"),) * 15, digit=((Text("0"),), (Text("1"),)))[:3] == (
        "0" * 15,
        "0" * 14 + "1",
        "0" * 13 + "10",
    )


def test_a_string_with_several_derivations_is_listed_once() -> None:
    assert strings_of_start((Text("ab"),), (Text("a"), Ref("b")), (Ref("b"),), b=((Text("b"),),)) == ("b", "ab")


def test_unproductive_and_undefined_nonterminals_have_no_strings() -> None:
    assert strings_of_start((Ref("start"),)) == ()
    assert strings_of_start(
        (Text("a"), Ref(UNDEFINED)), (Ref("other"),), other=((Ref(UNDEFINED),), (Text("b"),))
    ) == ("b",)
    assert ShortestStrings(Grammar({})).of(UNDEFINED) == ()


def test_a_long_chain_of_nonterminals_is_followed() -> None:
    chain = {f"n{i}": ((Ref(f"n{i + 1}"),),) for i in range(5_000)}
    assert ShortestStrings(Grammar(chain | {"n5000": ((Text("x"),),)})).of("n0") == ("x",)
