"""SMCalFlow's grammar says the programs of the real data in English, and the English means them again."""

import json
from collections import Counter
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fewparse.datasets.smcalflow.lispress import normal_form
from fewparse.domains.domain import Domain
from fewparse.domains.load import find_domain, load_domain
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.grammar.translation.translator import Translator
from support.smcalflow_files import needs_real_data, real_rows

SCORERS: tuple[ScorerName, ...] = ("shortest", "learned")


@cache
def translator() -> Translator:
    found = find_domain("smcalflow").translator
    assert found is not None
    return found


@pytest.fixture(scope="session")
def smcalflow(smcalflow_data: Path) -> Domain:
    return load_domain("smcalflow", smcalflow_data)


@cache
def canonical(program: str) -> str | None:
    return translator().to_utterance(program).best


def come_back(programs: Counter[str], scored: Translator) -> float:
    """The share of the turns whose canonical utterance means the same program."""

    def same(program: str) -> bool:
        said = canonical(program)
        back = None if said is None else scored.to_program(said).best
        return back is not None and normal_form(back) == normal_form(program)

    return sum(count for program, count in programs.items() if same(program)) / programs.total()


@needs_real_data
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["a third", "all"])
def test_the_programs_of_the_whole_data_are_said_and_come_back(smcalflow: Domain, step: int) -> None:
    turns = Counter(turn.program for turn in real_rows("dev_all.jsonl.gz"))
    programs = Counter({program: turns[program] for program in list(turns)[::step]})
    unsaid = {program: count for program, count in programs.items() if canonical(program) is None}
    assert sum(unsaid.values()) <= 0.002 * programs.total(), unsaid
    shares: dict[ScorerName, float] = {}
    for scorer in SCORERS:
        scored = smcalflow.scored_translator(scorer)
        assert scored is not None
        shares[scorer] = come_back(programs, scored)
    assert min(shares.values()) >= 0.99, shares
    said = Counter(canonical(program) for program in programs if program not in unsaid)
    assert said.most_common(1)[0][1] == 1, f"two programs are said alike: {said.most_common(1)}"


@needs_real_data
@pytest.mark.parametrize("name", ["train_300.jsonl", "dev_200.jsonl", "dev_100.jsonl"])
def test_every_program_of_the_published_selections_is_said_and_comes_back(smcalflow: Domain, name: str) -> None:
    programs = Counter(turn.program for turn in real_rows(name))
    assert [program for program in programs if canonical(program) is None] == []
    learned = smcalflow.scored_translator("learned")
    assert learned is not None
    shares = {"shortest": come_back(programs, translator()), "learned": come_back(programs, learned)}
    assert min(shares.values()) >= 0.99, shares


PAIRS = {
    'create an event called "tea" starting tomorrow at 4 pm lasting 1 hour': (
        "(Yield :output (CreateCommitEventWrapper :event (CreatePreflightEventWrapper :constraint"
        ' (Constraint[Event] :subject (?= #(String "tea")) :start (?= (DateAtTimeWithDefaults :date (Tomorrow)'
        " :time (NumberPM :number #(Number 4)))) :duration (?= (toHours #(Number 1)))))))"
    ),
    'delete the event with "Zoe" and "Ben"': (
        "(Yield :output (DeleteWrapper :findArg (singleton (:results (FindEventWrapperWithDefaults :constraint"
        " (Constraint[Event] :attendees (andConstraint (AttendeeListHasRecipient :recipient (CreateAddPerson :name"
        ' #(PersonName "Zoe"))) (AttendeeListHasRecipient :recipient (CreateAddPerson :name #(PersonName'
        ' "Ben"))))))))))'
    ),
    "will it snow in the weather at the current place for tomorrow": (
        "(Yield :output (WillSnow :table (WeatherQueryApi :place (AtPlace :place (Here)) :time"
        " (Constraint[DateTime] :date (?= (Tomorrow))))))"
    ),
    "first no, do not do that; then something out of scope": "(do (DoNotConfirm) (FenceScope))",
}


@pytest.mark.parametrize(("utterance", "program"), PAIRS.items(), ids=PAIRS)
def test_a_program_reads_as_english(utterance: str, program: str) -> None:
    assert translator().to_utterance(program).best == utterance
    assert translator().to_program(utterance).best == program


def assert_comes_back(program: str) -> str:
    """The canonical utterance of a program, which means it and nothing else."""
    said = translator().to_utterance(program)
    assert said.best is not None, f"{program} {said.error}"
    assert translator().to_program(said.best, k=2).texts == (program,), said.best
    return said.best


PROPERTIES = {
    ":subject": '(?= #(String "tea"))',
    ":location": '(?= #(LocationKeyphrase "attic"))',
    ":start": "(?= (NextTime :time (Noon)))",
    ":attendees": '(FindAddPerson :name #(PersonName "Zoe"))',
    ":duration": "(?> (toHours #(Number 2)))",
    ":showAs": '(?= #(ShowAsStatus "Busy"))',
}
WORDS = {
    ":subject": " called ",
    ":location": " located at ",
    ":start": " starting ",
    ":attendees": " with ",
    ":duration": " lasting ",
    ":showAs": " shown as ",
}


def with_properties(names: tuple[str, ...]) -> str:
    event = "".join(f" {name} {PROPERTIES[name]}" for name in names)
    return f"(Yield :output (FindEventWrapperWithDefaults :constraint (Constraint[Event]{event})))"


@pytest.mark.parametrize("count", [2, 4, 6])
def test_the_properties_of_an_event_stand_in_any_order_and_keep_it(count: int) -> None:
    orders = list(permutations(PROPERTIES, count))
    for names in orders[:: max(1, len(orders) // 60)]:
        said = assert_comes_back(with_properties(names))
        assert [name for _, name in sorted((said.index(WORDS[name]), name) for name in names)] == list(names)


def text_program(kind: str, text: str) -> str:
    outer = {"String": "{}", "PersonName": "(CreateAddPerson :name {})", "LocationKeyphrase": "{}"}[kind]
    return f"(Yield :output {outer.format(f'#({kind} {text})')})"


@settings(max_examples=150)
@given(st.sampled_from(["String", "PersonName", "LocationKeyphrase"]), st.text(max_size=20), st.booleans())
@example("String", "", False)
@example("String", 'say "hi" \\ and \\" so', False)
@example("PersonName", "Zoë 日本 😀", True)
@example("LocationKeyphrase", ') " (an event', False)
def test_any_text_is_said_as_it_is_written(kind: str, text: str, ascii_only: bool) -> None:
    written = json.dumps(text, ensure_ascii=ascii_only)
    assert written in assert_comes_back(text_program(kind, written))


@settings(max_examples=100)
@given(st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{1,12})?", fullmatch=True))
@example("0")
@example("007")
@example("-12.50")
def test_any_number_is_said_as_it_is_written(number: str) -> None:
    said = assert_comes_back(f"(Yield :output (toHours (+ #(Number {number}) #(Number 2))))")
    assert number in said


def test_an_event_can_have_thirty_attendees() -> None:
    names = [f'"P{i}"' for i in range(30)]
    invited = [f"(AttendeeListHasRecipient :recipient (CreateAddPerson :name #(PersonName {n})))" for n in names]
    everyone = invited[0]
    for person in invited[1:]:
        everyone = f"(andConstraint {everyone} {person})"
    said = assert_comes_back(
        f"(Yield :output (FindEventWrapperWithDefaults :constraint (Constraint[Event] :attendees {everyone})))"
    )
    assert said == f"find an event with {' and '.join(names)}"


def test_sentences_can_be_nested_thirty_deep_on_either_side() -> None:
    first = last = "(FenceScope)"
    for _ in range(30):
        first, last = f"(do {first} (DoNotConfirm))", f"(do (DoNotConfirm) {last})"
    assert assert_comes_back(first) != assert_comes_back(last)
    assert_comes_back(f"(do {' '.join(['(DoNotConfirm)'] * 30)})")
    assert_comes_back("(Yield :output " + "(not " * 30 + "#(Boolean true)" + ")" * 31)


@pytest.mark.parametrize(
    "program",
    [
        "",
        "(Yield)",
        "(Yield :output (Nothing))",
        "(Yield  :output (Now))",
        "(Yield :output (Today)",
        "(Yield :output #(Number one))",
        '(Yield :output #(String "a"b"))',
        '(Yield :output #(Month "Mai"))',
        "(Yield :output (MD :day #(Number 1)))",
        '(Yield :output (MD :day (Today) :month #(Month "MAY")))',
        "(FindEventWrapperWithDefaults :constraint (Constraint[Event]))",
    ],
)
def test_what_is_no_program_is_not_said(program: str) -> None:
    said = translator().to_utterance(program)
    assert said.best is None
    assert said.error
