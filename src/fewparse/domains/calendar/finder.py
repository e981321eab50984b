"""Find the people, rooms and meetings to which the arguments of a program refer."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from fewparse.domains.calendar import times
from fewparse.domains.calendar.reader import Form, Node, ProgramError, Text, Word, only_argument, word
from fewparse.domains.calendar.world import ONLINE, Meeting, Person, Room, World

GROUPS = ("team", "attendees")
MEETING_SETS = ("meetings", "conflicts")


class Finder:
    """Resolves arguments in a world; each method raises `ProgramError` for an argument of another type."""

    def __init__(self, world: World) -> None:
        self.world = world

    def person(self, node: Node) -> Person:
        """Return a person: a name, `me`, or the manager or organizer of something."""
        people = self.world.people
        if isinstance(node, Word):
            key = self.world.me if node.word == "me" else node.word
            if key not in people:
                raise ProgramError(f"expected a person, found {node}")
            return people[key]
        if isinstance(node, Form) and node.head == "manager":
            person = self.person(only_argument(node))
            if person.manager is None:
                raise ProgramError(f"{person.name} has no manager")
            return people[person.manager]
        if isinstance(node, Form) and node.head == "organizer":
            return people[self.meeting(only_argument(node)).organizer]
        raise ProgramError(f"expected a person, found {node}")

    def group(self, node: Node) -> frozenset[str]:
        """Return the ids of the members of a team, or of the attendees of a meeting."""
        if isinstance(node, Form) and node.head == "team":
            team = word(only_argument(node), "a team")
            members = frozenset(p.id for p in self.world.people.values() if p.team == team)
            if not members:
                raise ProgramError(f"there is no team {team}")
            return members
        if isinstance(node, Form) and node.head == "attendees":
            return self.meeting(only_argument(node)).attendees
        raise ProgramError(f"expected a group of people, found {node}")

    def guests(self, nodes: Sequence[Node]) -> list[frozenset[str]]:
        """Return one set of ids for each person or group."""
        if not nodes:
            raise ProgramError("expected at least one person or group")
        return [
            self.group(node)
            if isinstance(node, Form) and node.head in GROUPS
            else frozenset([self.person(node).id])
            for node in nodes
        ]

    def everyone(self, nodes: Sequence[Node]) -> frozenset[str]:
        """Return the ids of all people and members of groups."""
        return frozenset[str]().union(*self.guests(nodes))

    def meeting(self, node: Node) -> Meeting:
        """Return one meeting; of several matches, the earliest that is not over, else the latest."""
        if not isinstance(node, Form) or node.head not in ("meeting", *_SELECTORS):
            raise ProgramError(f"expected one meeting, found {node}")
        if node.head == "meeting":
            if not node.args:
                raise ProgramError("(meeting) needs a title or a filter")
            found = self._matching(node)
            not_over = [m for m in found if m.span.end > self.world.now]
            found = not_over[:1] or found[-1:]
        else:
            found = _SELECTORS[node.head](self.meetings(only_argument(node)), self.world.now)
        if not found:
            raise ProgramError(f"no such meeting: {node}")
        return found[0]

    def meetings(self, node: Node) -> list[Meeting]:
        """Return a set of meetings in the order of their start."""
        if isinstance(node, Form) and node.head == "meetings":
            return self._matching(node)
        if isinstance(node, Form) and node.head == "conflicts":
            subject = self.meeting(only_argument(node))
            return [
                m
                for m in self.world.meetings
                if m is not subject and m.span.overlaps(subject.span) and m.attendees & subject.attendees
            ]
        raise ProgramError(f"expected meetings, found {node}")

    def _matching(self, form: Form) -> list[Meeting]:
        tests = [self._filter(node) for node in form.args]
        return [m for m in self.world.meetings if all(test(m) for test in tests)]

    def _filter(self, node: Node) -> Callable[[Meeting], bool]:
        if isinstance(node, Text):
            words = re.compile(rf"(?<!\w){re.escape(quoted_text(node))}(?!\w)", re.IGNORECASE)
            return lambda m: words.search(m.title) is not None
        if not isinstance(node, Form):
            raise ProgramError(f"expected a meeting filter, found {node}")
        if node.head == "with":
            sets = self.guests(node.args)
            return lambda m: all(m.attendees & guests for guests in sets)
        arg = only_argument(node)
        match node.head:
            case "by":
                organizer = self.person(arg).id
                return lambda m: m.organizer == organizer
            case "on":
                days = times.days(arg, self.world)
                return lambda m: m.span.start.toordinal() in days
            case "at":
                return self._at(arg)
            case "after" | "before" if times.is_time(arg):
                moment = times.clock_time(arg)
                later = node.head == "after"
                return lambda m: (m.span.start.time() >= moment) is later
            case "after":
                day = times.day(arg, self.world)
                return lambda m: m.span.start.date() > day
            case "before":
                day = times.day(arg, self.world)
                return lambda m: m.span.start.date() < day
            case "in":
                place = self.place(arg)
                return lambda m: m.room == place
            case "longer-than":
                length = times.duration(arg)
                return lambda m: m.span.length > length
            case "shorter-than":
                length = times.duration(arg)
                return lambda m: m.span.length < length
        raise ProgramError(f"({node.head}) is not a meeting filter")

    def _at(self, node: Node) -> Callable[[Meeting], bool]:
        now = self.world.now
        if isinstance(node, Word) and node.word == "now":
            return lambda m: m.span.start <= now < m.span.end
        if isinstance(node, Word) and node.word in times.DAY_PARTS:
            first, last = times.DAY_PARTS[node.word]
            return lambda m: first <= m.span.start.hour < last
        moment = times.clock_time(node)
        return lambda m: m.span.start.time() == moment

    def is_room(self, node: Node) -> bool:
        """Return whether a node refers to a room."""
        if isinstance(node, Word):
            return node.word in self.world.rooms
        return isinstance(node, Form) and node.head in ("largest", "smallest", "where")

    def room(self, node: Node) -> Room:
        """Return a room: a name, the largest or smallest of a set, or the room of a meeting."""
        if isinstance(node, Word) and node.word in self.world.rooms:
            return self.world.rooms[node.word]
        if isinstance(node, Form) and node.head in ("largest", "smallest"):
            found = sorted(self.rooms(only_argument(node)), key=lambda room: room.capacity)
            if not found:
                raise ProgramError("there is no such room")
            return found[-1 if node.head == "largest" else 0]
        if isinstance(node, Form) and node.head == "where":
            meeting = self.meeting(only_argument(node))
            if meeting.room == ONLINE:
                raise ProgramError(f"{meeting} is online and has no room")
            return self.world.rooms[meeting.room]
        raise ProgramError(f"expected a room, found {node}")

    def place(self, node: Node) -> str:
        """Return the id of a room, or `online`."""
        return ONLINE if node == Word(ONLINE) else self.room(node).id

    def rooms(self, node: Node) -> list[Room]:
        """Return a set of rooms, sorted by name."""
        if not isinstance(node, Form) or node.head != "rooms":
            raise ProgramError(f"expected rooms, found {node}")
        tests = [self._room_filter(arg) for arg in node.args]
        found = [room for room in self.world.rooms.values() if all(test(room) for test in tests)]
        return sorted(found, key=lambda room: room.name)

    def _room_filter(self, node: Node) -> Callable[[Room], bool]:
        if not isinstance(node, Form):
            raise ProgramError(f"expected a room filter, found {node}")
        match node.head:
            case "at-least":
                seats = times.number(only_argument(node))
                return lambda room: room.capacity >= seats
            case "floor":
                floor = times.number(only_argument(node))
                return lambda room: room.floor == floor
            case "has":
                item = word(only_argument(node), "equipment")
                if not any(item in room.equipment for room in self.world.rooms.values()):
                    raise ProgramError(f"no room has the equipment {item}")
                return lambda room: item in room.equipment
            case "free":
                slot = times.slot(node.args, self.world)
                return lambda room: slot.fits(list(self.world.gaps(frozenset(), room.id, slot.within)))
        raise ProgramError(f"({node.head}) is not a room filter")


def quoted_text(node: Node) -> str:
    """Return a quoted string without surrounding whitespace; raise `ProgramError` if it is empty."""
    if not isinstance(node, Text):
        raise ProgramError(f"expected a quoted string, found {node}")
    if not node.text.strip():
        raise ProgramError("a quoted string is empty")
    return node.text.strip()


def _longest(found: list[Meeting], now: datetime) -> list[Meeting]:
    return sorted(found, key=lambda m: m.span.length, reverse=True)[:1]


_SELECTORS: dict[str, Callable[[list[Meeting], datetime], list[Meeting]]] = {
    "next": lambda found, now: [m for m in found if m.span.start > now][:1],
    "previous": lambda found, now: [m for m in found if m.span.end <= now][-1:],
    "first": lambda found, now: found[:1],
    "last": lambda found, now: found[-1:],
    "longest": _longest,
}
