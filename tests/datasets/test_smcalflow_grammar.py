"""SMCalFlow's grammar translates the programs of the real data to English and back."""

import json
from collections import Counter
from functools import cache
from itertools import permutations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fewparse.datasets.smcalflow.lispress import normal_form
from fewparse.domains.domain import Domain
from fewparse.domains.load import find_domain
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.grammar.translation.translator import Translator
from support.campaign import sizes
from support.smcalflow_files import needs_real_data, real_rows

SCORERS: tuple[ScorerName, ...] = ("shortest", "learned")


@cache
def translator() -> Translator:
    found = find_domain("smcalflow").translator
    assert found is not None
    return found


@cache
def canonical(program: str) -> str | None:
    return translator().to_utterance(program).best


def round_trip_rate(programs: Counter[str], scored: Translator) -> float:
    """Return the share of turns whose canonical utterance translates back to the same program."""

    def same(program: str) -> bool:
        utterance = canonical(program)
        back = None if utterance is None else scored.to_program(utterance).best
        return back is not None and normal_form(back) == normal_form(program)

    return sum(count for program, count in programs.items() if same(program)) / programs.total()


@needs_real_data
@sizes("step", default=40, campaign=1)
def test_the_programs_of_every_nth_turn_have_canonical_utterances_and_round_trip(
    smcalflow: Domain, step: int
) -> None:
    turns = Counter(turn.program for turn in real_rows("dev_all.jsonl.gz"))
    programs = Counter({program: turns[program] for program in list(turns)[::step]})
    untranslated = {program: count for program, count in programs.items() if canonical(program) is None}
    assert sum(untranslated.values()) <= 0.002 * programs.total(), untranslated
    shares: dict[ScorerName, float] = {}
    for scorer in SCORERS:
        scored = smcalflow.scored_translator(scorer)
        assert scored is not None
        shares[scorer] = round_trip_rate(programs, scored)
    assert min(shares.values()) >= 0.99, shares
    utterances = Counter(canonical(program) for program in programs if program not in untranslated)
    assert utterances.most_common(1)[0][1] == 1, (
        f"two programs have one canonical utterance: {utterances.most_common(1)}"
    )


@needs_real_data
@pytest.mark.parametrize("name", ["train_300.jsonl", "dev_200.jsonl", "dev_100.jsonl"])
def test_every_program_of_the_published_splits_has_a_canonical_utterance_and_round_trips(
    smcalflow: Domain, name: str
) -> None:
    programs = Counter(turn.program for turn in real_rows(name))
    assert [program for program in programs if canonical(program) is None] == []
    learned = smcalflow.scored_translator("learned")
    assert learned is not None
    shares = {"shortest": round_trip_rate(programs, translator()), "learned": round_trip_rate(programs, learned)}
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
def test_a_program_has_a_readable_canonical_utterance(utterance: str, program: str) -> None:
    assert translator().to_utterance(program).best == utterance
    assert translator().to_program(utterance).best == program


def assert_round_trip(program: str) -> str:
    """Return the canonical utterance of a program, which must translate to this program only."""
    translation = translator().to_utterance(program)
    assert translation.best is not None, f"{program} {translation.error}"
    assert translator().to_program(translation.best, k=2).texts == (program,), translation.best
    return translation.best


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
def test_the_properties_of_an_event_may_be_in_any_order_which_is_kept(count: int) -> None:
    orders = list(permutations(PROPERTIES, count))
    for names in orders[:: max(1, len(orders) // 60)]:
        utterance = assert_round_trip(with_properties(names))
        assert [name for _, name in sorted((utterance.index(WORDS[name]), name) for name in names)] == list(names)


def text_program(kind: str, text: str) -> str:
    outer = {"String": "{}", "PersonName": "(CreateAddPerson :name {})", "LocationKeyphrase": "{}"}[kind]
    return f"(Yield :output {outer.format(f'#({kind} {text})')})"


@settings(max_examples=150)
@given(st.sampled_from(["String", "PersonName", "LocationKeyphrase"]), st.text(max_size=20), st.booleans())
@example("String", "", False)
@example("String", 'say "hi" \\ and \\" so', False)
@example("PersonName", "Zoë 日本 😀", True)
@example("LocationKeyphrase", ') " (an event', False)
def test_any_string_is_copied_to_the_canonical_utterance(kind: str, text: str, ascii_only: bool) -> None:
    written = json.dumps(text, ensure_ascii=ascii_only)
    assert written in assert_round_trip(text_program(kind, written))


@settings(max_examples=100)
@given(st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{1,12})?", fullmatch=True))
@example("0")
@example("007")
@example("-12.50")
def test_any_number_is_copied_to_the_canonical_utterance(number: str) -> None:
    utterance = assert_round_trip(f"(Yield :output (toHours (+ #(Number {number}) #(Number 2))))")
    assert number in utterance


def test_an_event_can_have_thirty_attendees() -> None:
    names = [f'"P{i}"' for i in range(30)]
    invited = [f"(AttendeeListHasRecipient :recipient (CreateAddPerson :name #(PersonName {n})))" for n in names]
    everyone = invited[0]
    for person in invited[1:]:
        everyone = f"(andConstraint {everyone} {person})"
    utterance = assert_round_trip(
        f"(Yield :output (FindEventWrapperWithDefaults :constraint (Constraint[Event] :attendees {everyone})))"
    )
    assert utterance == f"find an event with {' and '.join(names)}"


def test_sentences_can_be_nested_thirty_deep_on_either_side() -> None:
    first = last = "(FenceScope)"
    for _ in range(30):
        first, last = f"(do {first} (DoNotConfirm))", f"(do (DoNotConfirm) {last})"
    assert assert_round_trip(first) != assert_round_trip(last)
    assert_round_trip(f"(do {' '.join(['(DoNotConfirm)'] * 30)})")
    assert_round_trip("(Yield :output " + "(not " * 30 + "#(Boolean true)" + ")" * 31)


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
def test_a_text_that_is_not_a_program_has_no_canonical_utterance(program: str) -> None:
    translation = translator().to_utterance(program)
    assert translation.best is None
    assert translation.error
