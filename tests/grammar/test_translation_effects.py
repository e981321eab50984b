"""What each means of a synchronous grammar does to a translation, by small grammars."""

from itertools import product

import pytest

from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.translation.scorers import FewestRules, Scorer
from fewparse.grammar.translation.strings import MOST_STRINGS
from fewparse.grammar.translation.translator import Translation, Translator

PRINTABLE = "".join(map(chr, range(32, 127)))


def translator(*lines: str, scorer: Scorer | None = None) -> Translator:
    return Translator(read_scfg_text("\n".join(lines)), scorer)


def every(translation: Translation) -> set[str]:
    """All texts, where all were asked for."""
    assert translation.complete
    return set(translation.texts)


def test_every_way_to_say_a_program_leads_to_it_and_the_shortest_leads_back() -> None:
    greet = translator('start -> "hello " who | "hi " who , "(Greet :to " who ")"', 'who -> "Ann"', 'who -> "Bo"')
    assert greet.to_program("hello Ann").best == greet.to_program("hi Ann").best == "(Greet :to Ann)"
    assert greet.to_utterance("(Greet :to Bo)", wanted=9).texts == ("hi Bo", "hello Bo")


def test_utterances_of_the_same_length_come_by_their_text() -> None:
    same = translator('start -> "b" | "c" | "a" | "dd" , "p"')
    assert same.to_utterance("p", wanted=9).texts == ("a", "b", "c", "dd")


def test_case_and_blanks_count() -> None:
    plain = translator('start -> "Say " word', 'word -> " a" , "A"')
    assert plain.to_program("Say  a").best == "Say A"
    assert plain.to_program("say  a").failure is not None
    assert plain.to_program("Say a").failure is not None


def test_a_mirrored_rule_is_itself() -> None:
    digits = translator("start -> digits", "digits -> /[0-9]/ digits", "digits -> /[0-9]/")
    assert every(digits.to_program("0427")) == every(digits.to_utterance("0427")) == {"0427"}


def test_names_may_stand_in_another_order() -> None:
    swapped = translator('start -> m " of " n , "(" n "," m ")"', 'm -> "a" , "A"', 'n -> "b" , "B"')
    assert every(swapped.to_program("a of b")) == {"(B,A)"}
    assert every(swapped.to_utterance("(B,A)")) == {"a of b"}


def test_the_second_of_a_name_is_the_second_on_the_other_side() -> None:
    both = translator('start -> n "-" n "-" n , n n "+" n', 'n -> "a" , "A"', 'n -> "b" , "B"')
    assert every(both.to_program("a-b-a")) == {"AB+A"}
    assert every(both.to_utterance("BA+A")) == {"b-a-a"}


def test_an_expression_is_paired_by_its_source_text() -> None:
    copied = translator('start -> /[a-c]/ /[0-9]/ /[a-c]/ , /[0-9]/ "." /[a-c]/ /[a-c]/')
    assert every(copied.to_program("a7c")) == {"7.ac"}
    assert every(copied.to_utterance("7.ac")) == {"a7c"}


def test_a_macro_that_repeats_its_argument_repeats_the_symbol_and_not_what_it_became() -> None:
    twice = translator('f(x) 2> x "+" x', 'start -> "a" n , f(n)', 'n -> "1" , "one"', 'n -> "2" , "two"')
    assert every(twice.to_program("a1", wanted=9)) == {"one+one", "one+two"}
    assert every(twice.to_utterance("one+two", wanted=9)) == {"a1"}


def test_an_unpartnered_name_of_the_target_may_be_any_of_its_strings() -> None:
    free = translator('start -> "a" , "A" n', 'n -> "1" , "one"', 'n -> "2" , "two"', 'n -> "3" , "three"')
    assert free.to_program("a", wanted=9).texts == ("Aone", "Atwo", "Athree")
    assert free.to_program("a").best == "Aone"


def test_of_an_unpartnered_name_with_many_strings_only_the_first_are_tried() -> None:
    free = translator('start -> "a" , n', "n -> n n", 'n -> "1"', 'n -> "0"')
    translation = free.to_program("a", wanted=100)
    assert translation.texts[:7] == ("0", "1", "00", "01", "10", "11", "000")
    assert len(translation.texts) == MOST_STRINGS
    assert not translation.complete


def test_an_unpartnered_expression_may_be_any_printable_character() -> None:
    free = translator('start -> "a" , "A" /./', 'start -> "b" , /[^ -}]/')
    assert free.to_program("a", wanted=200).texts == tuple(f"A{char}" for char in PRINTABLE)
    assert every(free.to_program("b", wanted=9)) == {"~"}
    assert every(free.to_utterance("Aé")) == {"a"}


def test_what_is_only_said_is_dropped_and_what_must_be_said_is_added() -> None:
    quoted = translator(
        r'start -> "\"" / / body "\"" , "\"" body "\""', "body -> /[a-z ]/ body", "body -> /[a-z ]/"
    )
    assert every(quoted.to_program('" lunch"')) == {'"lunch"'}
    assert every(quoted.to_utterance('"lunch"')) == {'" lunch"'}
    assert every(quoted.to_program('"  x"')) == {'" x"'}


def test_a_dropped_name_needs_no_counterpart() -> None:
    polite = translator('start -> "go" please , "GO"', 'please 1> " please" | #e')
    assert polite.to_program("go please").best == polite.to_program("go").best == "GO"
    assert every(polite.to_utterance("GO", wanted=9)) == {"go", "go please"}


def test_what_is_only_said_has_no_program_of_its_own() -> None:
    silent = translator('start -> word , "(" word ")"', 'word 1> "hm"', 'word -> "yes"')
    translation = silent.to_program("hm")
    assert (translation.best, translation.failure, translation.derivations) == (None, None, 1)
    assert translation.error == "is derived, but its derivations have no counterpart on the other side"
    assert silent.to_program("yes").best == "(yes)"


def test_an_optional_symbol_is_there_on_both_sides_or_on_neither() -> None:
    both = translator('start -> "a" "b"? , "A" "b"?')
    assert every(both.to_program("ab")) == {"Ab"}
    assert every(both.to_program("a")) == {"A"}


def test_an_optional_symbol_of_the_utterance_alone_is_dropped() -> None:
    said = translator('start -> "a" "!"? , "A"')
    assert said.to_program("a!").best == said.to_program("a").best == "A"
    assert said.to_utterance("A", wanted=9).texts == ("a", "a!")


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
    assert every(free.to_program("a", wanted=9)) == {"m"}


def test_the_same_utterance_may_have_several_programs_and_the_shortest_wins() -> None:
    unclear = translator('start -> "a" , "long"', 'start -> "a" , "z"', 'start -> "a" , "y"')
    assert unclear.to_program("a", wanted=9).texts == ("y", "z", "long")
    assert unclear.to_program("a", wanted=2).texts == ("y", "z")
    assert not unclear.to_program("a", wanted=2).complete


def test_the_smallest_derivation_wins_where_rules_are_counted() -> None:
    lines = ['start -> "a" x , x', 'x -> "b" , "two rules"', 'start -> "ab" , "one rule, and much longer text"']
    assert translator(*lines).to_program("ab").best == "two rules"
    assert translator(*lines, scorer=FewestRules()).to_program("ab").best == "one rule, and much longer text"


def test_the_empty_text_is_translated_where_it_is_derived() -> None:
    assert translator('start -> #e , "nothing"').to_program("").best == "nothing"
    assert translator('start -> "something" , #e').to_utterance("").best == "something"
    assert translator('start -> "a"').to_program("").error == "ends too early; expected 'a'"


def test_text_of_any_bytes_passes() -> None:
    plain = translator(r'start -> "é€" x "\ud83d\ude00" , x "😀\n"', "x -> /[^a]/")
    assert plain.to_program("é€ß😀").best == "ß😀\n"


def test_a_cycle_without_text_gives_each_text_once() -> None:
    around = translator("start -> x", "x -> start", 'x -> "a" , "A"', 'x -> "a" , "B"')
    for scorer in (None, FewestRules()):
        translation = Translator(around.grammar, scorer).to_program("a", wanted=9)
        assert translation.texts == ("A", "B")
        assert translation.complete
        assert translation.derivations is None


def test_a_cycle_that_adds_text_has_no_last_text_and_a_first_one() -> None:
    growing = translator('start -> start , "f(" start ")"', 'start -> "a"')
    assert growing.to_program("a").best == "a"
    translation = growing.to_program("a", wanted=4)
    assert translation.texts == ("a", "f(a)", "f(f(a))", "f(f(f(a)))")
    assert (translation.complete, translation.derivations) == (False, None)
    assert growing.to_utterance("f(f(a))").best == "a"


def test_a_cycle_that_adds_text_in_two_places_gives_what_it_can() -> None:
    growing = translator('start -> start start , "b" start start', "start -> #e")
    translation = growing.to_program("", wanted=1_000)
    assert translation.texts[:4] == ("", "b", "bb", "bbb")
    assert translation.texts == tuple(sorted(translation.texts, key=len))
    assert not translation.complete


def test_a_cycle_may_be_the_only_way_to_a_counterpart() -> None:
    silent = translator("start -> x", 'x -> start , "X"', 'x 1> "a"')
    assert silent.to_program("a", wanted=9).texts == ("X",)


@pytest.mark.parametrize(("short", "long"), [("x", "yy"), ("yy", "x")])
def test_a_part_that_several_splits_share_keeps_what_the_best_of_them_allows(short: str, long: str) -> None:
    shared = translator(
        "start -> p q r",
        'p -> "a" , "1"',
        'p -> "a" , "02"',
        f'q -> "x" , "{short}"',
        f'q -> "xx" , "{long}"',
        'r -> "x" , "z"',
        'r -> "xx" , "z"',
    )
    assert shared.to_program("axxx", wanted=2).texts == ("1xz", "02xz")
    assert shared.to_program("axxx", wanted=9).texts == ("1xz", "02xz", "1yyz", "02yyz")


@pytest.mark.parametrize("wanted", [1, 3])
def test_many_derivations_of_one_program_are_one_program(wanted: int) -> None:
    spurious = translator("start -> start start", 'start -> "a" , "b"')
    translation = spurious.to_program("a" * 30, wanted)
    assert translation.texts == ("b" * 30,)
    assert translation.complete
    assert translation.derivations is not None
    assert translation.derivations > 10**15


@pytest.mark.parametrize("wanted", [1, 3, 50])
def test_the_best_of_very_many_programs_is_found(wanted: int) -> None:
    bits = [line for text in ("0", "1", "22") for line in (f"bit -> is{text}", f'is{text} -> "x" , "{text}"')]
    many = translator("start -> bit start", "start -> bit", *bits)
    translation = many.to_program("x" * 16, wanted)
    expected = ["".join(chosen) for chosen in product("01", repeat=16)][:wanted]
    assert translation.derivations == 3**16
    assert translation.texts == tuple(expected)
    assert not translation.complete


def test_ties_of_very_many_programs_are_broken_by_text_whatever_the_characters() -> None:
    marks = [f'mark -> "x" , {written}' for written in (r'"\""', '"\'"', r'"\\"')]
    quotes = translator("start -> mark start", "start -> mark", *marks)
    assert quotes.to_program("x" * 16, wanted=2).texts == ('"' * 16, '"' * 15 + "'")


def test_a_list_of_thousands_is_translated() -> None:
    listed = translator('start -> start "," item , start " " item', "start -> item", "item -> /[a-z]/")
    assert listed.to_program(",".join("ab" * 1_000)).best == " ".join("ab" * 1_000)


def test_deep_nesting_is_translated() -> None:
    nested = translator('start -> "(" start ")" , "[" start "]"', 'start -> "x"')
    assert nested.to_program("(" * 700 + "x" + ")" * 700).best == "[" * 700 + "x" + "]" * 700
