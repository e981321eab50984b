"""Folding: names of one kind become one word, so that utterances of the same structure are similar."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fewparse.domains.load import load_domain
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.lm.usage import Usage
from fewparse.retrieve.folding import FoldedRetriever, folding, rules_of_words

KINDS = {"elena": "name", "tom": "name", "monday": "day", "café": "place"}
FOLD = folding(KINDS)


def test_names_of_a_kind_are_replaced_by_the_kind_in_any_case() -> None:
    assert FOLD("ELENA and Tom meet Monday") == "name and name meet day"
    assert FOLD("the Café") == "the place"


def test_punctuation_around_a_name_is_kept() -> None:
    assert FOLD('"Tom", (Elena)? Tom\'s; with Tom.') == '"name", (name)? name\'s; with name.'


def test_a_name_inside_a_longer_word_is_not_folded() -> None:
    assert FOLD("tomorrow, atom, Tom_2b") == "tomorrow, atom, number"


def test_a_word_with_a_digit_is_a_number() -> None:
    assert FOLD("at 3pm, 9:30am or 2.5 h in room B12") == "at number, number or number h in room number"


@given(st.text())
def test_text_without_known_words_or_digits_is_unchanged(text: str) -> None:
    plain = "".join(char for char in text if not char.isdigit())
    if not any(kind in plain.lower() for kind in KINDS):
        assert FOLD(plain) == plain


@given(st.text())
def test_without_kinds_numbers_are_folded_completely(text: str) -> None:
    once = folding({})(text)
    assert not any(char.isdigit() and char.isalnum() for char in once)
    assert folding({})(once) == once


def test_the_words_of_a_rule_include_those_of_the_rules_it_uses() -> None:
    source = 'start: day | NAME\nday: "Today" | WEEKDAY | "x" | "in-2-days"\nWEEKDAY: "Monday"\nNAME: "Tom"\n'
    grammar = read_grammar(source, Path("grammar.lark"), "start")
    assert rules_of_words(grammar, ("day",)) == {"today": "day", "monday": "day"}
    assert rules_of_words(grammar, ("NAME", "WEEKDAY")) == {"tom": "name", "monday": "weekday"}
    assert rules_of_words(grammar, ()) == {}


def test_calendar_utterances_that_differ_in_names_and_numbers_fold_to_the_same_text() -> None:
    fold = load_domain("calendar").fold
    assert fold is not None
    assert fold("What does Elena have on Friday at 3pm?") == fold("What does Tom have on tomorrow at 11:15am?")
    assert fold("Is Atlas free?") == fold("Is Garnet free?") != fold("Is Elena free?")


def test_a_domain_without_rules_to_fold_has_no_folding() -> None:
    assert load_domain("starter").fold is None


def test_a_folded_retriever_passes_the_folded_utterance_to_the_inner_one() -> None:
    calls = []

    class RecordingRetriever:
        def rank(self, utterance: str, usage: Usage) -> list[int]:
            calls.append((utterance, usage))
            return [2, 0, 1]

    usage = Usage()
    assert FoldedRetriever(RecordingRetriever(), FOLD).rank("with Tom at 3", usage) == [2, 0, 1]
    assert calls == [("with name at number", usage)]


def test_folding_takes_time_linear_in_the_length_of_the_text() -> None:
    """With quadratic time, this text would take minutes."""
    fold = folding({"elena": "name"})
    dots = ":" * 300_000
    assert fold(f"{dots} Elena: x.Elena. 9.30: {dots}") == f"{dots} name: x.Elena. number: {dots}"
