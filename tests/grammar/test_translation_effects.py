"""The effect of each construct of a synchronous grammar on translation, with small grammars."""

from itertools import product

import pytest

from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.translation.scorers import FewestRules, Scorer
from fewparse.grammar.translation.shortest_strings import MAX_STRINGS
from fewparse.grammar.translation.translator import Translation, Translator

PRINTABLE = "".join(map(chr, range(32, 127)))


def translator(*lines: str, scorer: Scorer | None = None) -> Translator:
    return Translator(read_scfg_text("\n".join(lines)), scorer)


def all_texts(translation: Translation) -> set[str]:
    """Return the texts of a translation that must be complete."""
    assert translation.complete
    return set(translation.texts)


def test_every_utterance_translates_to_its_program_and_the_program_to_the_shortest() -> None:
    greet = translator('start -> "hello " who | "hi " who , "(Greet :to " who ")"', 'who -> "Ann"', 'who -> "Bo"')
    assert greet.to_program("hello Ann").best == greet.to_program("hi Ann").best == "(Greet :to Ann)"
    assert greet.to_utterance("(Greet :to Bo)", k=9).texts == ("hi Bo", "hello Bo")


def test_utterances_of_equal_length_are_ordered_by_text() -> None:
    same = translator('start -> "b" | "c" | "a" | "dd" , "p"')
    assert same.to_utterance("p", k=9).texts == ("a", "b", "c", "dd")


def test_case_and_blanks_are_significant() -> None:
    plain = translator('start -> "Say " word', 'word -> " a" , "A"')
    assert plain.to_program("Say  a").best == "Say A"
    assert plain.to_program("say  a").failure is not None
    assert plain.to_program("Say a").failure is not None


def test_a_rule_without_a_program_side_is_the_same_on_both_sides() -> None:
    digits = translator("start -> digits", "digits -> /[0-9]/ digits", "digits -> /[0-9]/")
    assert all_texts(digits.to_program("0427")) == all_texts(digits.to_utterance("0427")) == {"0427"}


def test_nonterminals_may_be_reordered() -> None:
    swapped = translator('start -> m " of " n , "(" n "," m ")"', 'm -> "a" , "A"', 'n -> "b" , "B"')
    assert all_texts(swapped.to_program("a of b")) == {"(B,A)"}
    assert all_texts(swapped.to_utterance("(B,A)")) == {"a of b"}


def test_repeated_nonterminals_are_linked_in_order() -> None:
    both = translator('start -> n "-" n "-" n , n n "+" n', 'n -> "a" , "A"', 'n -> "b" , "B"')
    assert all_texts(both.to_program("a-b-a")) == {"AB+A"}
    assert all_texts(both.to_utterance("BA+A")) == {"b-a-a"}


def test_equal_regular_expressions_are_linked_in_order() -> None:
    copied = translator('start -> /[a-c]/ /[0-9]/ /[a-c]/ , /[0-9]/ "." /[a-c]/ /[a-c]/')
    assert all_texts(copied.to_program("a7c")) == {"7.ac"}
    assert all_texts(copied.to_utterance("7.ac")) == {"a7c"}


def test_a_macro_that_repeats_its_argument_repeats_the_symbol_and_not_its_text() -> None:
    twice = translator('f(x) 2> x "+" x', 'start -> "a" n , f(n)', 'n -> "1" , "one"', 'n -> "2" , "two"')
    assert all_texts(twice.to_program("a1", k=9)) == {"one+one", "one+two"}
    assert all_texts(twice.to_utterance("one+two", k=9)) == {"a1"}


def test_an_unlinked_nonterminal_of_the_target_may_be_any_of_its_strings() -> None:
    free = translator('start -> "a" , "A" n', 'n -> "1" , "one"', 'n -> "2" , "two"', 'n -> "3" , "three"')
    assert free.to_program("a", k=9).texts == ("Aone", "Atwo", "Athree")
    assert free.to_program("a").best == "Aone"


def test_only_the_shortest_strings_of_an_unlinked_nonterminal_are_tried() -> None:
    free = translator('start -> "a" , n', "n -> n n", 'n -> "1"', 'n -> "0"')
    translation = free.to_program("a", k=100)
    assert translation.texts[:7] == ("0", "1", "00", "01", "10", "11", "000")
    assert len(translation.texts) == MAX_STRINGS
    assert not translation.complete


def test_an_unlinked_character_class_may_be_any_printable_character() -> None:
    free = translator('start -> "a" , "A" /./', 'start -> "b" , /[^ -}]/')
    assert free.to_program("a", k=200).texts == tuple(f"A{char}" for char in PRINTABLE)
    assert all_texts(free.to_program("b", k=9)) == {"~"}
    assert all_texts(free.to_utterance("Aé")) == {"a"}


def test_unlinked_source_symbols_are_dropped_and_unlinked_target_symbols_are_added() -> None:
    quoted = translator(
        r'start -> "\"" / / body "\"" , "\"" body "\""', "body -> /[a-z ]/ body", "body -> /[a-z ]/"
    )
    assert all_texts(quoted.to_program('" lunch"')) == {'"lunch"'}
    assert all_texts(quoted.to_utterance('"lunch"')) == {'" lunch"'}
    assert all_texts(quoted.to_program('"  x"')) == {'" x"'}


def test_a_dropped_nonterminal_needs_no_translation() -> None:
    polite = translator('start -> "go" please , "GO"', 'please 1> " please" | #e')
    assert polite.to_program("go please").best == polite.to_program("go").best == "GO"
    assert all_texts(polite.to_utterance("GO", k=9)) == {"go", "go please"}


def test_a_rule_of_the_utterance_side_alone_has_no_program() -> None:
    partial = translator('start -> word , "(" word ")"', 'word 1> "hm"', 'word -> "yes"')
    translation = partial.to_program("hm")
    assert (translation.best, translation.failure, translation.derivation_count) == (None, None, 1)
    assert translation.error == "is derived, but its derivations have no counterpart on the other side"
    assert partial.to_program("yes").best == "(yes)"


def test_an_optional_symbol_is_present_on_both_sides_or_on_neither() -> None:
    both = translator('start -> "a" "b"? , "A" "b"?')
    assert all_texts(both.to_program("ab")) == {"Ab"}
    assert all_texts(both.to_program("a")) == {"A"}


def test_an_optional_symbol_of_the_utterance_alone_is_dropped() -> None:
    optional = translator('start -> "a" "!"? , "A"')
    assert optional.to_program("a!").best == optional.to_program("a").best == "A"
    assert optional.to_utterance("A", k=9).texts == ("a", "a!")


def test_an_optional_symbol_of_the_program_alone_makes_its_rule_useless() -> None:
    dead = translator('start -> "a" , "A" "!"?', 'start -> "b" , "B"')
    assert dead.to_program("a").error is not None
    assert dead.to_utterance("A").failure is not None
    assert dead.to_utterance("B").best == "b"


def test_an_undefined_name_makes_only_its_rules_useless() -> None:
    part = translator('start -> "a" nowhere , "A" nowhere', 'start -> "b" , "B"', 'start -> "c" , "C" nowhere')
    assert part.to_program("b").best == "B"
    assert part.to_program("a").failure is not None
    assert part.to_program("c").error is not None
    free = translator('start -> "a" , n', "n -> nowhere", 'n -> "n" other', "other -> nowhere", 'n -> "m"')
    assert all_texts(free.to_program("a", k=9)) == {"m"}


def test_of_several_programs_of_an_utterance_the_shortest_comes_first() -> None:
    unclear = translator('start -> "a" , "long"', 'start -> "a" , "z"', 'start -> "a" , "y"')
    assert unclear.to_program("a", k=9).texts == ("y", "z", "long")
    assert unclear.to_program("a", k=2).texts == ("y", "z")
    assert not unclear.to_program("a", k=2).complete


def test_the_smallest_derivation_is_best_if_rules_are_counted() -> None:
    lines = ['start -> "a" x , x', 'x -> "b" , "two rules"', 'start -> "ab" , "one rule, and much longer text"']
    assert translator(*lines).to_program("ab").best == "two rules"
    assert translator(*lines, scorer=FewestRules()).to_program("ab").best == "one rule, and much longer text"


def test_the_empty_text_is_translated_if_it_is_derived() -> None:
    assert translator('start -> #e , "nothing"').to_program("").best == "nothing"
    assert translator('start -> "something" , #e').to_utterance("").best == "something"
    assert translator('start -> "a"').to_program("").error == "ends too early; expected 'a'"


def test_any_unicode_text_is_translated() -> None:
    plain = translator(r'start -> "é€" x "\ud83d\ude00" , x "😀\n"', "x -> /[^a]/")
    assert plain.to_program("é€ß😀").best == "ß😀\n"


def test_a_cycle_without_text_gives_each_text_once() -> None:
    around = translator("start -> x", "x -> start", 'x -> "a" , "A"', 'x -> "a" , "B"')
    for scorer in (None, FewestRules()):
        translation = Translator(around.grammar, scorer).to_program("a", k=9)
        assert translation.texts == ("A", "B")
        assert translation.complete
        assert translation.derivation_count is None


def test_a_cycle_that_adds_text_gives_infinitely_many_texts_in_order() -> None:
    growing = translator('start -> start , "f(" start ")"', 'start -> "a"')
    assert growing.to_program("a").best == "a"
    translation = growing.to_program("a", k=4)
    assert translation.texts == ("a", "f(a)", "f(f(a))", "f(f(f(a)))")
    assert (translation.complete, translation.derivation_count) == (False, None)
    assert growing.to_utterance("f(f(a))").best == "a"


def test_a_cycle_that_adds_text_twice_gives_the_texts_within_the_limits() -> None:
    growing = translator('start -> start start , "b" start start', "start -> #e")
    translation = growing.to_program("", k=1_000)
    assert translation.texts[:4] == ("", "b", "bb", "bbb")
    assert translation.texts == tuple(sorted(translation.texts, key=len))
    assert not translation.complete


def test_a_cycle_may_be_required_for_a_translation() -> None:
    cyclic = translator("start -> x", 'x -> start , "X"', 'x 1> "a"')
    assert cyclic.to_program("a", k=9).texts == ("X",)


@pytest.mark.parametrize(("short", "long"), [("x", "yy"), ("yy", "x")])
def test_a_part_shared_by_several_splits_has_the_largest_of_their_slacks(short: str, long: str) -> None:
    shared = translator(
        "start -> p q r",
        'p -> "a" , "1"',
        'p -> "a" , "02"',
        f'q -> "x" , "{short}"',
        f'q -> "xx" , "{long}"',
        'r -> "x" , "z"',
        'r -> "xx" , "z"',
    )
    assert shared.to_program("axxx", k=2).texts == ("1xz", "02xz")
    assert shared.to_program("axxx", k=9).texts == ("1xz", "02xz", "1yyz", "02yyz")


@pytest.mark.parametrize("k", [1, 3])
def test_many_derivations_of_one_program_give_one_text(k: int) -> None:
    spurious = translator("start -> start start", 'start -> "a" , "b"')
    translation = spurious.to_program("a" * 30, k)
    assert translation.texts == ("b" * 30,)
    assert translation.complete
    assert translation.derivation_count is not None
    assert translation.derivation_count > 10**15


@pytest.mark.parametrize("k", [1, 3, 50])
def test_the_best_of_very_many_programs_is_found(k: int) -> None:
    bits = [line for text in ("0", "1", "22") for line in (f"bit -> is{text}", f'is{text} -> "x" , "{text}"')]
    many = translator("start -> bit start", "start -> bit", *bits)
    translation = many.to_program("x" * 16, k)
    expected = ["".join(chosen) for chosen in product("01", repeat=16)][:k]
    assert translation.derivation_count == 3**16
    assert translation.texts == tuple(expected)
    assert not translation.complete


def test_ties_of_very_many_programs_are_broken_by_text_for_any_characters() -> None:
    marks = [f'mark -> "x" , {written}' for written in (r'"\""', '"\'"', r'"\\"')]
    quotes = translator("start -> mark start", "start -> mark", *marks)
    assert quotes.to_program("x" * 16, k=2).texts == ('"' * 16, '"' * 15 + "'")


def test_a_list_of_thousands_of_items_is_translated() -> None:
    listed = translator('start -> start "," item , start " " item', "start -> item", "item -> /[a-z]/")
    assert listed.to_program(",".join("ab" * 1_000)).best == " ".join("ab" * 1_000)


def test_deep_nesting_is_translated() -> None:
    nested = translator('start -> "(" start ")" , "[" start "]"', 'start -> "x"')
    assert nested.to_program("(" * 700 + "x" + ")" * 700).best == "[" * 700 + "x" + "]" * 700
