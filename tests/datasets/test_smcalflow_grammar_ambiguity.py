"""SMCalFlow's canonical utterances are unambiguous: each has one program, however its phrases are nested."""

from dataclasses import replace
from functools import cache

import pytest

from fewparse.domains.load import find_domain
from fewparse.grammar.analysis.sampling import Pair, sample_pairs
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.translator import Translator
from support.campaign import sizes

MAX_LENGTH = 600
"""Longer utterances, in characters, are skipped to save time."""


@cache
def grammar() -> SynchronousGrammar:
    found = find_domain("smcalflow").language
    assert isinstance(found, SynchronousGrammar)
    return found


@cache
def translator() -> Translator:
    return Translator(grammar())


def assert_unambiguous(pair: Pair, by: Translator) -> None:
    assert by.to_program(pair.utterance, k=2).texts == (pair.program,), pair.utterance


@pytest.mark.parametrize("depth", [6, 9, 12, 16, 24])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_random_sentence_has_one_program(seed: int, depth: int) -> None:
    for pair in sample_pairs(grammar(), 200, seed, depth):
        if len(pair.utterance) <= MAX_LENGTH:
            assert_unambiguous(pair, translator())


@sizes("count", default=2, campaign=100)
def test_a_random_phrase_has_one_program(count: int) -> None:
    """Most nonterminals are rare in sampled sentences, so phrases are sampled from each nonterminal."""
    for name in dict.fromkeys(rule.name for rule in grammar().rules):
        parts = replace(grammar(), start=name)
        by = Translator(parts)
        for depth in (5, 8, 11):
            for pair in sample_pairs(parts, count, depth, depth):
                if len(pair.utterance) <= MAX_LENGTH:
                    assert_unambiguous(pair, by)


def weather(time: str) -> str:
    return f"(WeatherQueryApi :place (AtPlace :place (Here)) :time {time})"


def aggregate(quality: str, time: str) -> str:
    return (
        f'(WeatherAggregate :quantifier #(WeatherQuantifier "Max") :property #(WeatherProp "{quality}") :table'
        f" {weather(time)})"
    )


def replaced(kind: str, new: str) -> str:
    return f"(NewClobberWrapper :oldArg (Constraint[Constraint[{kind}]]) :newArg {new})"


def replaced_attendees(new: str) -> str:
    old = "(extensionConstraint (alwaysTrueConstraintConstraint (AlwaysTrueConstraint[List[Attendee]])))"
    return f"(NewClobberWrapper :oldArg {old} :newArg {new})"


def start_of_draft(start: str) -> str:
    draft = f"(Constraint[CreateCommitEvent] :data (Constraint[EventSpec] :start {start}))"
    return f"(:start (:data (Execute :intension (refer (extensionConstraint {draft})))))"


def a_date(fields: str) -> str:
    return f"(getIntraSalient (Constraint[Date] {fields}))"


def site_of(names: str) -> str:
    return f"(:url (getIntraSalient (Constraint[Place] {names})))"


def both(first: str, second: str) -> str:
    return f"(andConstraint {first} {second})"


def in_two_days(dynamic: str) -> str:
    return f"(adjustByPeriod {dynamic} (toDays #(Number 2)))"


def at_noon(date: str) -> str:
    return f"(DateAtTimeWithDefaults :date {date} :time (Noon))"


def easter_of(year: str) -> str:
    return f'(HolidayYear :holiday #(Holiday "Easter") :year {year})'


def with_attendees(condition: str) -> str:
    return f"(FindEventWrapperWithDefaults :constraint (Constraint[Event] :attendees {condition}))"


def attendees_of_result(dynamic: str) -> str:
    return f"(?= (:attendees (:item {dynamic})))"


def month(year: str, inner: str) -> str:
    return f"(getIntraSalient (FullMonthofMonth :month {inner}{year}))"


NOW, LATER, ON_TODAY, AT_NOON = "(?= (Now))", "(Later)", ":date (?= (Today))", ":time (?= (Noon))"
TODAY, TOMORROW, YEAR = "(?= (Today))", "(?= (Tomorrow))", " :year #(Number 2020)"
ZOE, BEN = '(FindAddPerson :name #(PersonName "Zoe"))', '(FindAddPerson :name #(PersonName "Ben"))'
DAY, YEAR_FIELD, MAY = ":day (?= #(Number 3))", ":year (?= #(Number 2020))", '#(Month "MAY")'
NAME_A, NAME_B = ':name (?= #(String "a"))', ':name (?= #(String "b"))'
ATTACHMENTS = {
    "a time to the weather or to a date": (
        easter_of(aggregate("uvIndex", f"(?= {at_noon('(Today)')})")),
        at_noon(easter_of(aggregate("uvIndex", f"(Constraint[DateTime] {ON_TODAY})"))),
    ),
    "a moment to the weather's moments or to others": (
        replaced("DateTime", f"(?= {aggregate('sunriseTime', both(NOW, LATER))})"),
        replaced("DateTime", both(f"(?= {aggregate('sunriseTime', NOW)})", LATER)),
    ),
    "a date to a replacement or to what depends on it": (
        replaced("Date", f"(?= {in_two_days(replaced('Date', both(TODAY, TOMORROW)))})"),
        replaced("Date", both(f"(?= {in_two_days(replaced('Date', TODAY))})", TOMORROW)),
    ),
    "a time to a replacement or to a date": (
        in_two_days(replaced("DateTime", f"(Constraint[DateTime] {ON_TODAY} {AT_NOON})")),
        at_noon(in_two_days(replaced("DateTime", f"(Constraint[DateTime] {ON_TODAY})"))),
    ),
    "an attendee to a replacement or to an event": (
        with_attendees(attendees_of_result(replaced_attendees(both(ZOE, BEN)))),
        with_attendees(both(attendees_of_result(replaced_attendees(ZOE)), BEN)),
    ),
    "a moment to a draft or to what depends on it": (
        replaced("DateTime", f"(?= {start_of_draft(both(NOW, LATER))})"),
        replaced("DateTime", both(f"(?= {start_of_draft(NOW)})", LATER)),
    ),
    "a time to a draft or to a moment": (
        f"(getIntraSalient (Constraint[DateTime] :date (?= (:date"
        f" {start_of_draft(f'(Constraint[DateTime] {ON_TODAY} {AT_NOON})')}))))",
        f"(getIntraSalient (Constraint[DateTime] :date (?= (:date"
        f" {start_of_draft(f'(Constraint[DateTime] {ON_TODAY})')})) {AT_NOON}))",
    ),
    "a year to the inner date or to the outer": (
        a_date(f":day (?= (:day {a_date(f'{DAY} {YEAR_FIELD}')}))"),
        a_date(f":day (?= (:day {a_date(DAY)})) {YEAR_FIELD}"),
    ),
    "a name to the inner place or to the outer": (
        site_of(f":name (?= {site_of(f'{NAME_A} {NAME_B}')})"),
        site_of(f":name (?= {site_of(NAME_A)}) {NAME_B}"),
    ),
    "a year to the inner month or to the outer": (
        month("", f"(:month {month(YEAR, MAY)})"),
        month(YEAR, f"(:month {month('', MAY)})"),
    ),
}


@pytest.mark.parametrize(("inner", "outer"), ATTACHMENTS.values(), ids=ATTACHMENTS)
def test_the_attachment_of_the_last_phrase_is_unambiguous(inner: str, outer: str) -> None:
    for value in (inner, outer):
        program = f"(Yield :output {value})"
        translation = translator().to_utterance(program)
        assert translation.best is not None, f"{program} {translation.error}"
        assert_unambiguous(Pair(translation.best, program), translator())
