"""Lessons with other quotations: the same in utterance and output, and only what the grammar admits."""

from pathlib import Path

import numpy as np
import pytest

from fewparse.datasets.smcalflow.lispress import normal_form
from fewparse.domains.load import load_domain
from fewparse.example import Example
from fewparse.tune.quotations import Quotations
from fewparse.tune.variation import variation

LUNCH = Example("add lunch on friday", '(add (Text "lunch") (Day "FRIDAY"))', 'add "lunch" on Friday')
GYM = Example("Add Gym on Monday", '(add (Text "Gym") (Day "MONDAY"))', 'add "Gym" on Monday')
MIA = Example("call Mia Poe", '(call (Name "Mia Poe"))', 'call "Mia Poe"')


def vary(example: Example, seed: int = 0, admitted: bool = True) -> Example:
    quotations = Quotations([LUNCH, GYM, MIA], lambda varied: admitted)
    return quotations.vary(example, np.random.default_rng(seed))


def test_copies_and_names_become_others_of_their_kind_in_utterance_and_outputs_alike() -> None:
    assert vary(LUNCH) == Example("add Gym on monday", '(add (Text "Gym") (Day "MONDAY"))', 'add "Gym" on Monday')
    assert vary(GYM) == Example(
        "Add lunch on Friday", '(add (Text "lunch") (Day "FRIDAY"))', 'add "lunch" on Friday'
    )


def test_a_kind_that_has_one_text_only_stays() -> None:
    assert vary(MIA) == MIA


@pytest.mark.parametrize(
    "utterance",
    ["add LUNCH", "add lunch after lunch", "add lunches", "add it", "add lunch or Gym"],
    ids=["other letters", "twice", "a part of a word", "not at all", "and the other one too"],
)
def test_a_copy_that_is_not_said_once_letter_by_letter_stays(utterance: str) -> None:
    example = Example(utterance, '(add (Text "lunch"))')
    assert vary(example) == example


def test_what_was_written_for_the_context_stays_with_it() -> None:
    varied = vary(Example("lunch", '(is (Text "lunch"))', 'is "lunch"', "What is it called?"))
    assert varied == Example("Gym", '(is (Text "Gym"))', 'is "Gym"', "What is it called?")


def test_the_word_before_a_quotation_is_its_kind() -> None:
    strange = Example("say lunch", '(say (Phrase "lunch"))')
    assert (
        Quotations([LUNCH, GYM, strange], lambda varied: True).vary(strange, np.random.default_rng(0)) == strange
    )


def test_a_quotation_within_another_stays_with_it() -> None:
    said = Example("add lunch with Mia on Monday", '(add (Text "lunch with Mia") (Name "Mia") (Day "MONDAY"))')
    quotations = Quotations([LUNCH, GYM, MIA, said], lambda varied: True)
    varied = quotations.vary(said, np.random.default_rng(0))
    assert varied == Example(
        "add lunch with Mia on Friday", '(add (Text "lunch with Mia") (Name "Mia") (Day "FRIDAY"))'
    )


def test_what_the_grammar_does_not_admit_stays_as_it_was() -> None:
    assert vary(LUNCH, admitted=False) == LUNCH


def test_the_notes_of_the_starter_are_exchanged() -> None:
    domain = load_domain("starter")
    quotations = variation(domain)
    assert quotations is not None
    note = Example("note: buy milk", '(note "buy milk")')
    random = np.random.default_rng(0)
    varied = {quotations.vary(note, random) for _ in range(20)}
    taught = {example.program for example in domain.examples}
    assert len(varied) > 1
    assert {example.program for example in varied} < taught
    assert all(example.program == f'(note "{example.utterance.removeprefix("note: ")}")' for example in varied)


def test_a_closed_list_of_outputs_is_not_varied(overnight_data: Path) -> None:
    assert variation(load_domain("overnight/calendar", overnight_data)) is None


def test_varied_examples_of_smcalflow_mean_what_they_say(smcalflow_data: Path) -> None:
    domain = load_domain("smcalflow", smcalflow_data).for_target("canonical")
    quotations = variation(domain)
    assert quotations is not None
    random = np.random.default_rng(3)
    varied = [quotations.vary(example, random) for example in domain.examples]
    changed = [new for new, old in zip(varied, domain.examples, strict=True) if new != old]
    assert len(changed) > len(domain.examples) / 3
    for example in changed:
        meant = domain.program_of(example.canonical or "", "canonical")
        assert meant is not None
        assert normal_form(meant) == normal_form(example.program)
