"""The facts the calendar programs are executed over: people, rooms, meetings and a fixed present."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

ONLINE = "online"
DAY_STARTS, DAY_ENDS = 9, 18


@dataclass(frozen=True)
class Person:
    id: str
    name: str
    surname: str
    team: str
    role: str
    manager: str | None
    email: str


@dataclass(frozen=True)
class Room:
    id: str
    name: str
    capacity: int
    floor: int
    equipment: frozenset[str]


@dataclass(frozen=True)
class Interval:
    """A stretch of time, its end excluded."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def overlaps(self, other: "Interval") -> bool:
        return self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        return f"{show_day(self.start)} {show_time(self.start)}-{show_time(self.end)}"


@dataclass(frozen=True)
class Meeting:
    title: str
    span: Interval
    organizer: str
    attendees: frozenset[str]
    room: str

    def __str__(self) -> str:
        return f"{self.title} ({show_moment(self.span.start)})"


@dataclass(frozen=True)
class World:
    now: datetime
    me: str
    people: dict[str, Person]
    rooms: dict[str, Room]
    meetings: tuple[Meeting, ...]

    @property
    def today(self) -> date:
        return self.now.date()

    def gaps(self, who: frozenset[str], room: str | None, within: Interval) -> Iterator[Interval]:
        """The stretches of `within` in which all of `who` and the room, if any, have no meeting."""
        start = within.start
        for meeting in self.meetings:
            if not (meeting.attendees & who or meeting.room == room) or not meeting.span.overlaps(within):
                continue
            if meeting.span.start > start:
                yield Interval(start, meeting.span.start)
            start = max(start, meeting.span.end)
        if start < within.end:
            yield Interval(start, within.end)


def show_day(moment: date) -> str:
    return f"{moment:%a} {moment:%Y-%m-%d}"


def show_time(moment: datetime) -> str:
    return f"{moment.hour % 12 or 12}:{moment:%M}{'am' if moment.hour < 12 else 'pm'}"


def show_moment(moment: datetime) -> str:
    return f"{show_day(moment)} {show_time(moment)}"


@cache
def load_world() -> World:
    """The world of `world.json`, its meetings in the order in which they start."""
    facts = json.loads(Path(__file__).with_name("world.json").read_text(encoding="utf-8"))
    people = {entry["id"]: Person(**entry) for entry in facts["people"]}
    rooms = {
        entry["id"]: Room(**{**entry, "equipment": frozenset(entry["equipment"])}) for entry in facts["rooms"]
    }
    meetings = sorted(
        (_meeting(entry) for entry in facts["meetings"]), key=lambda m: (m.span.start, m.title, m.organizer)
    )
    return World(datetime.fromisoformat(facts["now"]), facts["me"], people, rooms, tuple(meetings))


def _meeting(entry: dict[str, Any]) -> Meeting:
    start = datetime.fromisoformat(f"{entry['date']}T{entry['start']}")
    return Meeting(
        title=entry["title"],
        span=Interval(start, start + timedelta(minutes=entry["minutes"])),
        organizer=entry["organizer"],
        attendees=frozenset(entry["attendees"]),
        room=entry["room"],
    )
