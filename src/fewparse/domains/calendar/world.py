"""The database of the calendar domain: people, rooms, meetings and a fixed current time."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

ONLINE = "online"
DAY_START, DAY_END = 9, 18


@dataclass(frozen=True)
class Person:
    """A person; `manager` is the id of another one."""

    id: str
    name: str
    surname: str
    team: str
    role: str
    manager: str | None
    email: str


@dataclass(frozen=True)
class Room:
    """A meeting room."""

    id: str
    name: str
    capacity: int
    floor: int
    equipment: frozenset[str]


@dataclass(frozen=True)
class Interval:
    """A half-open interval of time."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        """The duration of the interval."""
        return self.end - self.start

    def overlaps(self, other: "Interval") -> bool:
        """Return whether two intervals have a common moment."""
        return self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        return f"{show_day(self.start)} {show_time(self.start)}-{show_time(self.end)}"


@dataclass(frozen=True)
class Meeting:
    """A meeting; people are given by their ids, and `room` is an id or `online`."""

    title: str
    span: Interval
    organizer: str
    attendees: frozenset[str]
    room: str

    def __str__(self) -> str:
        return f"{self.title} ({show_moment(self.span.start)})"


@dataclass(frozen=True)
class World:
    """All facts: people and rooms by their ids, and meetings in the order of their start."""

    now: datetime
    me: str
    people: dict[str, Person]
    rooms: dict[str, Room]
    meetings: tuple[Meeting, ...]

    @property
    def today(self) -> date:
        """The current day."""
        return self.now.date()

    def gaps(self, people: frozenset[str], room: str | None, within: Interval) -> Iterator[Interval]:
        """Yield the intervals of `within` in which neither any of the people nor the room has a meeting."""
        start = within.start
        for meeting in self.meetings:
            if not (meeting.attendees & people or meeting.room == room) or not meeting.span.overlaps(within):
                continue
            if meeting.span.start > start:
                yield Interval(start, meeting.span.start)
            start = max(start, meeting.span.end)
        if start < within.end:
            yield Interval(start, within.end)


def show_day(moment: date) -> str:
    """Format a day, such as `Wed 2026-03-11`."""
    return f"{moment:%a} {moment:%Y-%m-%d}"


def show_time(moment: datetime) -> str:
    """Format a time of day, such as `9:30am`."""
    return f"{moment.hour % 12 or 12}:{moment:%M}{'am' if moment.hour < 12 else 'pm'}"


def show_moment(moment: datetime) -> str:
    """Format a day and a time of day."""
    return f"{show_day(moment)} {show_time(moment)}"


@cache
def load_world() -> World:
    """Load `world.json`, once."""
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
