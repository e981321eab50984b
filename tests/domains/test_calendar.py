"""The bundled calendar: enough of it, consistent with itself, and answers that were worked out by hand.

What the answers are compared with is taken from `world.json` in the plainest way, without the executor's code.
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

CALENDAR = load_domain("calendar")
GRAMMAR = (Path(__file__).parents[1] / "support" / "calendar.lark").read_text(encoding="utf-8")
EVERYTHING = (*CALENDAR.examples, *CALENDAR.test_examples)
WORLD = json.loads((CALENDAR.folder / "world.json").read_text(encoding="utf-8"))
MEETINGS: list[dict[str, Any]] = sorted(WORLD["meetings"], key=lambda m: (m["date"], m["start"], m["title"]))
DEMO = Path(__file__).parents[2] / "demo" / "utterances.txt"


def functions(text: str) -> set[str]:
    return set(re.findall(r"\(([a-z-]+)", text))


def folded(utterance: str) -> str:
    return " ".join(re.findall(r"\w+", utterance.lower()))


def test_the_language_has_at_least_25_functions_and_the_examples_show_every_one() -> None:
    in_grammar = functions(" ".join(re.findall(r'"([^"]*)"', GRAMMAR)))
    assert len(in_grammar) >= 25
    assert functions(" ".join(e.program for e in CALENDAR.examples)) == in_grammar


def test_there_are_at_least_150_examples_and_80_held_out_ones() -> None:
    assert len(CALENDAR.examples) >= 150
    assert len(CALENDAR.test_examples) >= 80


def test_no_utterance_is_both_an_example_and_held_out() -> None:
    taught = {folded(e.utterance) for e in CALENDAR.examples}
    held_out = {folded(e.utterance) for e in CALENDAR.test_examples}
    assert len(taught) == len(CALENDAR.examples)
    assert len(held_out) == len(CALENDAR.test_examples)
    assert not taught & held_out


def test_every_utterance_of_the_demonstration_is_held_out() -> None:
    shown = [line for line in DEMO.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert shown
    assert set(shown) <= {e.utterance for e in CALENDAR.test_examples}


def test_every_program_is_a_sentence_of_the_grammar_as_lark_reads_it() -> None:
    lark = Lark(GRAMMAR, parser="earley", lexer="dynamic_complete")
    for example in EVERYTHING:
        assert lark.parse(example.program)


def test_every_program_is_well_formed_and_copies_from_its_own_utterance() -> None:
    # Programs without text do not depend on the utterance, and compiling for each would take long.
    shared = CALENDAR.constraint(BYTES, "program", "anything")
    for example in EVERYTHING:
        constraint = CALENDAR.constraint(BYTES, "program", example.utterance) if '"' in example.program else shared
        assert constraint.accepts(example.program.encode()), example


@pytest.mark.parametrize("examples", [CALENDAR.examples, CALENDAR.test_examples], ids=["taught", "held out"])
def test_every_program_executes_to_something_that_json_can_say(examples: tuple[Example, ...]) -> None:
    for example in examples:
        answer = CALENDAR.execute(example.program)
        assert json.loads(json.dumps(answer)) == answer


def start(meeting: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(f"{meeting['date']}T{meeting['start']}")


def titles(meetings: list[dict[str, Any]]) -> list[str]:
    """Meetings as the calendar writes them: title, weekday, date and time."""
    return [
        f"{m['title']} ({start(m):%a %Y-%m-%d} {start(m).strftime('%I:%M%p').lstrip('0').lower()})"
        for m in meetings
    ]


def mine(*dates: str) -> list[dict[str, Any]]:
    return [m for m in MEETINGS if "Sam" in m["attendees"] and m["date"] in dates]


def test_the_world_is_the_one_that_these_answers_were_worked_out_for() -> None:
    assert (WORLD["now"], WORLD["me"]) == ("2026-03-11T10:15", "Sam")
    assert datetime.fromisoformat(WORLD["now"]).strftime("%A") == "Wednesday"


THIS_WEEK = [f"2026-03-{day:02}" for day in range(9, 16)]
NEXT_WEEK = [f"2026-03-{day:02}" for day in range(16, 23)]
COUNTED: dict[str, Any] = {
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


@pytest.mark.parametrize(("program", "answer"), COUNTED.items(), ids=COUNTED)
def test_an_answer_is_what_counting_in_the_world_gives(program: str, answer: Any) -> None:
    assert answer not in ([], 0), "an empty answer would prove little"
    assert CALENDAR.execute(program) == answer


READ_OFF: dict[str, Any] = {
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


@pytest.mark.parametrize(("program", "answer"), READ_OFF.items(), ids=READ_OFF)
def test_an_answer_is_what_a_reader_of_the_world_finds(program: str, answer: Any) -> None:
    assert CALENDAR.execute(program) == answer


REFUSED = {
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


@pytest.mark.parametrize(("program", "reason"), REFUSED.items(), ids=[p[:40] for p in REFUSED])
def test_a_program_without_an_answer_is_refused_with_the_reason(program: str, reason: str) -> None:
    with pytest.raises(ExecutionError, match=re.escape(reason)):
        CALENDAR.execute(program)
