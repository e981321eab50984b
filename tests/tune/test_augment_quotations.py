"""Quotation swaps: the same in utterance and output, and only to examples that the grammar admits."""

from pathlib import Path

import numpy as np
import pytest

from fewparse.datasets.smcalflow.lispress import normal_form
from fewparse.domains.constraints import ConstraintKind
from fewparse.domains.load import load_domain
from fewparse.domains.sql.constraint import SqlConstraint
from fewparse.example import Example
from fewparse.tune.augment import QuotationSwap, augmenter_for

LUNCH = Example("add lunch on friday", '(add (Text "lunch") (Day "FRIDAY"))', 'add "lunch" on Friday')
GYM = Example("Add Gym on Monday", '(add (Text "Gym") (Day "MONDAY"))', 'add "Gym" on Monday')
MIA = Example("call Mia Poe", '(call (Name "Mia Poe"))', 'call "Mia Poe"')


def quotation_swap(*examples: Example, grammatical: bool = True) -> QuotationSwap:
    return QuotationSwap(examples, ConstraintKind.quotation, {}, lambda augmented: grammatical)


def augment(example: Example, seed: int = 0, grammatical: bool = True) -> Example:
    return quotation_swap(LUNCH, GYM, MIA, grammatical=grammatical).augment(example, np.random.default_rng(seed))


def test_copied_texts_and_names_become_others_of_their_kind_in_utterance_and_outputs_alike() -> None:
    assert augment(LUNCH) == Example(
        "add Gym on monday", '(add (Text "Gym") (Day "MONDAY"))', 'add "Gym" on Monday'
    )
    assert augment(GYM) == Example(
        "Add lunch on Friday", '(add (Text "lunch") (Day "FRIDAY"))', 'add "lunch" on Friday'
    )


def test_the_only_text_of_a_kind_is_not_replaced() -> None:
    assert augment(MIA) == MIA


@pytest.mark.parametrize(
    "utterance",
    ["add LUNCH", "add lunch after lunch", "add lunches", "add it", "add lunch or Gym"],
    ids=["other case", "twice", "part of a word", "not at all", "with the replacement"],
)
def test_a_copied_text_that_does_not_occur_exactly_once_is_not_replaced(utterance: str) -> None:
    example = Example(utterance, '(add (Text "lunch"))')
    assert augment(example) == example


def test_the_context_is_not_changed() -> None:
    augmented = augment(Example("lunch", '(is (Text "lunch"))', 'is "lunch"', "What is it called?"))
    assert augmented == Example("Gym", '(is (Text "Gym"))', 'is "Gym"', "What is it called?")


def test_the_word_before_a_quotation_is_its_kind() -> None:
    phrase = Example("say lunch", '(say (Phrase "lunch"))')
    augmenter = quotation_swap(LUNCH, GYM, phrase)
    assert augmenter.augment(phrase, np.random.default_rng(0)) == phrase


def test_overlapping_quotations_are_not_replaced() -> None:
    overlapping = Example(
        "add lunch with Mia on Monday", '(add (Text "lunch with Mia") (Name "Mia") (Day "MONDAY"))'
    )
    augmenter = quotation_swap(LUNCH, GYM, MIA, overlapping)
    augmented = augmenter.augment(overlapping, np.random.default_rng(0))
    assert augmented == Example(
        "add lunch with Mia on Friday", '(add (Text "lunch with Mia") (Name "Mia") (Day "FRIDAY"))'
    )


def test_a_text_that_two_kinds_quote_is_not_replaced() -> None:
    example = Example("add lunch", '(add (Text "lunch") (Phrase "lunch"))')
    assert augment(example) == example


def test_values_of_a_column_become_other_known_values_of_it() -> None:
    example = Example(
        "towns of Oslo",
        "SELECT name FROM town WHERE city = 'oslo' AND NOT city = 'oslo'",
        "the towns whose city is oslo",
    )
    swap = QuotationSwap(
        [example], SqlConstraint.quotation, {"city": ["oslo", "new york"]}, lambda augmented: True
    )
    assert swap.augment(example, np.random.default_rng(0)) == Example(
        "towns of New york",
        "SELECT name FROM town WHERE city = 'new york' AND NOT city = 'new york'",
        "the towns whose city is new york",
    )


def test_an_example_is_returned_unchanged_if_the_grammar_rejects_the_result() -> None:
    assert augment(LUNCH, grammatical=False) == LUNCH


def test_the_notes_of_the_starter_domain_are_swapped() -> None:
    domain = load_domain("starter")
    augmenter = augmenter_for(domain)
    assert augmenter is not None
    note = Example("note: buy milk", '(note "buy milk")')
    random = np.random.default_rng(0)
    augmented = {augmenter.augment(note, random) for _ in range(20)}
    programs = {example.program for example in domain.examples}
    assert len(augmented) > 1
    assert {example.program for example in augmented} < programs
    assert all(example.program == f'(note "{example.utterance.removeprefix("note: ")}")' for example in augmented)


def test_a_domain_with_a_finite_set_of_outputs_is_not_augmented(overnight_data: Path) -> None:
    assert augmenter_for(load_domain("overnight/calendar", overnight_data)) is None


def test_augmented_examples_of_smcalflow_are_correct(smcalflow_data: Path) -> None:
    domain = load_domain("smcalflow", smcalflow_data).for_target("canonical")
    augmenter = augmenter_for(domain)
    assert augmenter is not None
    random = np.random.default_rng(3)
    augmented = [augmenter.augment(example, random) for example in domain.examples]
    changed = [new for new, old in zip(augmented, domain.examples, strict=True) if new != old]
    assert len(changed) > len(domain.examples) / 3
    for example in changed:
        program = domain.program_of(example.canonical or "", "canonical")
        assert program is not None
        assert normal_form(program) == normal_form(example.program)
