"""Folding: names of one kind become one word, so that utterances of one shape find each other."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fewparse.domains.load import load_domain
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.lm.usage import Usage
from fewparse.retrieve.folding import FoldedRetriever, folding, rules_of_words

KINDS = {"elena": "name", "tom": "name", "monday": "day", "café": "place"}
FOLD = folding(KINDS)


def test_names_of_one_kind_become_one_word_whatever_their_case() -> None:
    assert FOLD("ELENA and Tom meet Monday") == "name and name meet day"
    assert FOLD("the Café") == "the place"


def test_marks_around_a_name_stay() -> None:
    assert FOLD('"Tom", (Elena)? Tom\'s; with Tom.') == '"name", (name)? name\'s; with name.'


def test_a_name_inside_another_word_is_no_name() -> None:
    assert FOLD("tomorrow, atom, Tom_2b") == "tomorrow, atom, number"


def test_whatever_has_a_digit_is_a_number() -> None:
    assert FOLD("at 3pm, 9:30am or 2.5 h in room B12") == "at number, number or number h in room number"


@given(st.text())
def test_text_without_known_words_or_digits_is_unchanged(text: str) -> None:
    plain = "".join(char for char in text if not char.isdigit())
    if not any(kind in plain.lower() for kind in KINDS):
        assert FOLD(plain) == plain


@given(st.text())
def test_without_kinds_only_numbers_are_folded_and_nothing_is_left_of_them(text: str) -> None:
    once = folding({})(text)
    assert not any(char.isdigit() and char.isalnum() for char in once)
    assert folding({})(once) == once


def test_the_kinds_are_the_words_of_a_rule_and_of_the_rules_inside_it() -> None:
    source = 'start: day | NAME\nday: "Today" | WEEKDAY | "x" | "in-2-days"\nWEEKDAY: "Monday"\nNAME: "Tom"\n'
    grammar = read_grammar(source, Path("grammar.lark"), "start")
    assert rules_of_words(grammar, ("day",)) == {"today": "day", "monday": "day"}
    assert rules_of_words(grammar, ("NAME", "WEEKDAY")) == {"tom": "name", "monday": "weekday"}
    assert rules_of_words(grammar, ()) == {}


def test_utterances_of_one_shape_are_one_for_the_calendar() -> None:
    fold = load_domain("calendar").fold
    assert fold is not None
    assert fold("What does Elena have on Friday at 3pm?") == fold("What does Tom have on tomorrow at 11:15am?")
    assert fold("Is Atlas free?") == fold("Is Garnet free?") != fold("Is Elena free?")


def test_a_domain_that_names_no_rules_does_not_fold() -> None:
    assert load_domain("starter").fold is None


def test_a_folded_retriever_asks_the_inner_one_in_folded_words() -> None:
    asked = []

    class Remembering:
        def rank(self, utterance: str, usage: Usage) -> list[int]:
            asked.append((utterance, usage))
            return [2, 0, 1]

    usage = Usage()
    assert FoldedRetriever(Remembering(), FOLD).rank("with Tom at 3", usage) == [2, 0, 1]
    assert asked == [("with name at number", usage)]
