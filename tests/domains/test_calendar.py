"""The calendar domain: sizes, consistency, and answers computed by hand.

Expected answers are computed from `world.json` without the code of the executor.
"""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lark import Lark

from fewparse.domains.load import load_domain
from fewparse.errors import ExecutionError
from fewparse.example import Example
from fewparse.vocabulary import BYTES
from support.campaign import sizes

CALENDAR = load_domain("calendar")
GRAMMAR = (Path(__file__).parents[1] / "support" / "calendar.lark").read_text(encoding="utf-8")
ALL_EXAMPLES = (*CALENDAR.examples, *CALENDAR.test_examples)
WORLD = json.loads((CALENDAR.folder / "world.json").read_text(encoding="utf-8"))
MEETINGS: list[dict[str, Any]] = sorted(WORLD["meetings"], key=lambda m: (m["date"], m["start"], m["title"]))
DEMO = Path(__file__).parents[2] / "demo" / "utterances.txt"


def functions(text: str) -> set[str]:
    return set(re.findall(r"\(([a-z-]+)", text))


def normalised(utterance: str) -> str:
    return " ".join(re.findall(r"\w+", utterance.lower()))


def test_the_language_has_at_least_25_functions_and_the_examples_use_every_one() -> None:
    in_grammar = functions(" ".join(re.findall(r'"([^"]*)"', GRAMMAR)))
    assert len(in_grammar) >= 25
    assert functions(" ".join(e.program for e in CALENDAR.examples)) == in_grammar


def test_there_are_at_least_150_training_and_80_test_examples() -> None:
    assert len(CALENDAR.examples) >= 150
    assert len(CALENDAR.test_examples) >= 80


def test_no_utterance_is_both_a_training_and_a_test_example() -> None:
    train = {normalised(e.utterance) for e in CALENDAR.examples}
    test = {normalised(e.utterance) for e in CALENDAR.test_examples}
    assert len(train) == len(CALENDAR.examples)
    assert len(test) == len(CALENDAR.test_examples)
    assert not train & test


def test_every_utterance_of_the_demo_is_a_test_example() -> None:
    shown = [line for line in DEMO.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert shown
    assert set(shown) <= {e.utterance for e in CALENDAR.test_examples}


@sizes("step", default=5, campaign=1)
def test_lark_accepts_every_nth_program(step: int) -> None:
    lark = Lark(GRAMMAR, parser="earley", lexer="dynamic_complete")
    for example in ALL_EXAMPLES[::step]:
        assert lark.parse(example.program)


def test_the_constraint_of_its_utterance_accepts_every_program() -> None:
    # Programs without strings do not depend on the utterance, and compiling a constraint for each takes long.
    shared = CALENDAR.constraint(BYTES, "program", "anything")
    for example in ALL_EXAMPLES:
        constraint = CALENDAR.constraint(BYTES, "program", example.utterance) if '"' in example.program else shared
        assert constraint.accepts(example.program.encode()), example


@pytest.mark.parametrize("examples", [CALENDAR.examples, CALENDAR.test_examples], ids=["train", "test"])
def test_every_program_has_an_answer_that_is_json(examples: tuple[Example, ...]) -> None:
    for example in examples:
        answer = CALENDAR.execute(example.program)
        assert json.loads(json.dumps(answer)) == answer


def start(meeting: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(f"{meeting['date']}T{meeting['start']}")


def titles(meetings: list[dict[str, Any]]) -> list[str]:
    """Format meetings as the executor does: title, weekday, date and time."""
    return [
        f"{m['title']} ({start(m):%a %Y-%m-%d} {start(m).strftime('%I:%M%p').lstrip('0').lower()})"
        for m in meetings
    ]


def mine(*dates: str) -> list[dict[str, Any]]:
    return [m for m in MEETINGS if "Sam" in m["attendees"] and m["date"] in dates]


def test_the_world_has_the_time_and_user_that_the_answers_assume() -> None:
    assert (WORLD["now"], WORLD["me"]) == ("2026-03-11T10:15", "Sam")
    assert datetime.fromisoformat(WORLD["now"]).strftime("%A") == "Wednesday"


THIS_WEEK = [f"2026-03-{day:02}" for day in range(9, 16)]
NEXT_WEEK = [f"2026-03-{day:02}" for day in range(16, 23)]
COMPUTED_ANSWERS: dict[str, Any] = {
    "(count (meetings (on this-week)))": len([m for m in MEETINGS if m["date"] in THIS_WEEK]),
    "(count (meetings (with me) (on tomorrow)))": len(mine("2026-03-12")),
    "(list (meetings (with me) (on Wednesday)))": titles(mine("2026-03-18")),
    "(list (meetings (with me) (on last-Monday)))": titles(mine("2026-03-09")),
    "(total-time (meetings (with me) (on tomorrow)))": sum(m["minutes"] for m in mine("2026-03-12")),
    "(count (meetings (by Tom) (on next-week)))": len(
        [m for m in MEETINGS if m["organizer"] == "Tom" and m["date"] in NEXT_WEEK]
    ),
    "(list (meetings (longer-than (hours 2))))": titles([m for m in MEETINGS if m["minutes"] > 120]),
    "(list (meetings (with Anna Tom)))": titles([m for m in MEETINGS if {"Anna", "Tom"} <= set(m["attendees"])]),
    '(count (meetings "interview"))': len([m for m in MEETINGS if m["title"] == "Interview"]),
    "(list (meetings (at now)))": titles(
        [
            m
            for m in MEETINGS
            if start(m) <= datetime(2026, 3, 11, 10, 15) < start(m) + timedelta(minutes=m["minutes"])
        ]
    ),
    "(who (team engineering))": sorted(p["name"] for p in WORLD["people"] if p["team"] == "engineering"),
    "(count (rooms (has projector)))": len([r for r in WORLD["rooms"] if "projector" in r["equipment"]]),
    "(list (rooms (at-least 10)))": sorted(r["name"] for r in WORLD["rooms"] if r["capacity"] >= 10),
}


@pytest.mark.parametrize(("program", "answer"), COMPUTED_ANSWERS.items(), ids=COMPUTED_ANSWERS)
def test_an_answer_equals_the_one_computed_from_the_world(program: str, answer: Any) -> None:
    assert answer not in ([], 0), "an empty answer is a weak test"
    assert CALENDAR.execute(program) == answer


EXPECTED_ANSWERS: dict[str, Any] = {
    "(who (manager me))": "Anna",
    "(email (manager Chloe))": "maria.castellano@lumenworks.example",
    "(capacity Garnet)": 16,
    "(what (largest (rooms (has whiteboard))))": "Garnet",
    "(when (next (meetings (with me))))": "Wed 2026-03-11 1:00pm",
    '(ends (meeting "Budget Review"))': "Thu 2026-03-12 11:30am",
    '(where (meeting "Launch Day"))': "Harbor",
    '(where (meeting "Standup"))': "online",
    '(list (conflicts (meeting "Roadmap Workshop")))': ["Standup (Fri 2026-03-13 9:30am)"],
    "(free me (on tomorrow) (at 2pm))": True,
    "(free me (on tomorrow) (at 1pm))": False,
    "(free-times Ember (on today))": ["Wed 2026-03-11 9:00am-10:00am", "Wed 2026-03-11 10:30am-6:00pm"],
    '(delay (meeting "Retro") (minutes 30))': {
        "action": "delay",
        "meeting": "Retro (Fri 2026-03-13 2:00pm)",
        "to": "Fri 2026-03-13 2:30pm",
    },
    '(create "Lunch" (with Anna (team sales)) (on Friday) (at noon) (in Cedar))': {
        "action": "create",
        "title": "Lunch",
        "with": ["Anna", "Elena", "Kofi"],
        "date": "Fri 2026-03-13",
        "start": "12:00pm",
        "minutes": 30,
        "room": "Cedar",
    },
}


@pytest.mark.parametrize(("program", "answer"), EXPECTED_ANSWERS.items(), ids=EXPECTED_ANSWERS)
def test_an_answer_equals_the_one_found_by_hand(program: str, answer: Any) -> None:
    assert CALENDAR.execute(program) == answer


ERRORS = {
    '(shorten (meeting "Retro") (hours 2))': "takes only 60 minutes",
    '(when (meeting "Moon Landing"))': "no such meeting",
    '(capacity (where (meeting "Standup")))': "is online and has no room",
    "(who (manager Victor))": "Victor has no manager",
    "(free me (on today) (after 5pm) (before 3pm))": "ends before it starts",
    "(list": "1 parentheses are not closed",
    "(sing)": "is not a question or a command",
    "(list (meetings (at noon) (on)))": "takes one argument",
    "(who (team catering))": "there is no team catering",
    "": "a program is exactly one form",
    "(x " * 41 + ")" * 41: "nested more than 40 deep",
    "(list (meetings" + " " * 4_000 + "))": "the limit is 4000",
}


@pytest.mark.parametrize(("program", "reason"), ERRORS.items(), ids=[p[:40] for p in ERRORS])
def test_a_program_without_an_answer_is_an_error_with_a_reason(program: str, reason: str) -> None:
    with pytest.raises(ExecutionError, match=re.escape(reason)):
        CALENDAR.execute(program)
