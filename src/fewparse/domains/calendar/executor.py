"""Execute calendar programs: a question returns its answer, a command a description of its effect.

Execution has no side effects: commands do not change the world.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta

from fewparse.domains.calendar import times
from fewparse.domains.calendar.finder import GROUPS, MEETING_SETS, Finder, quoted_text
from fewparse.domains.calendar.reader import Form, Node, ProgramError, Text, named_arguments, only_argument, read
from fewparse.domains.calendar.world import ONLINE, Meeting, load_world, show_day, show_moment, show_time

__all__ = ["ProgramError", "execute"]


def execute(program: str) -> object:
    """Return the answer or effect of a program as JSON data; raise `ProgramError` if it has none."""
    form = read(program)
    operation = _QUESTIONS.get(form.head) or _COMMANDS.get(form.head)
    if operation is None:
        raise ProgramError(f"({form.head}) is not a question or a command")
    return operation(Finder(load_world()), form)


def _list(find: Finder, form: Form) -> object:
    node = only_argument(form)
    if _head(node) in MEETING_SETS:
        return [str(meeting) for meeting in find.meetings(node)]
    return [room.name for room in find.rooms(node)]


def _count(find: Finder, form: Form) -> object:
    node = only_argument(form)
    if _head(node) in MEETING_SETS:
        return len(find.meetings(node))
    return len(find.group(node) if _head(node) in GROUPS else find.rooms(node))


def _any(find: Finder, form: Form) -> object:
    node = only_argument(form)
    return bool(find.meetings(node) if _head(node) in MEETING_SETS else find.rooms(node))


def _what(find: Finder, form: Form) -> object:
    node = only_argument(form)
    return find.room(node).name if _head(node) in ("largest", "smallest") else str(find.meeting(node))


def _where(find: Finder, form: Form) -> object:
    return _place_name(find, find.meeting(only_argument(form)).room)


def _who(find: Finder, form: Form) -> object:
    node = only_argument(form)
    return _names(find, find.group(node)) if _head(node) in GROUPS else find.person(node).name


def _total_time(find: Finder, form: Form) -> object:
    return sum(_minutes(meeting.span.length) for meeting in find.meetings(only_argument(form)))


def _attends(find: Finder, form: Form) -> object:
    person, meeting = _arguments(form, 2)
    return find.person(person).id in find.meeting(meeting).attendees


def _free(find: Finder, form: Form) -> object:
    people, room, slot = _availability(find, form)
    return slot.fits(list(find.world.gaps(people, room, slot.within)))


def _free_times(find: Finder, form: Form) -> object:
    people, room, slot = _availability(find, form)
    gaps = find.world.gaps(people, room, slot.within)
    return [str(gap) for gap in gaps if slot.need is None or gap.length >= slot.need]


def _create(find: Finder, form: Form) -> object:
    rest = form.args
    title = "Meeting"
    if rest and isinstance(rest[0], Text):
        title, rest = quoted_text(rest[0]), rest[1:]
    guests: list[str] = []
    if rest and isinstance(rest[0], Form) and rest[0].head == "with":
        guests, rest = _names(find, find.everyone(rest[0].args)), rest[1:]
    if len(rest) == len(form.args):
        raise ProgramError("(create) needs a title or guests")
    parts = named_arguments(rest, ("on", "at", "for", "in"))
    place = _place_name(find, find.place(parts["in"])) if "in" in parts else None
    return {"action": "create", "title": title, "with": guests, **_timing(find, parts), "room": place}


def _book(find: Finder, form: Form) -> object:
    if len(form.args) < 2:
        raise ProgramError("(book) takes a room and a day or a time")
    parts = named_arguments(form.args[1:], ("on", "at", "for"))
    if not parts.keys() - {"for"}:
        raise ProgramError("(book) needs a day or a time")
    return {"action": "book", "room": find.room(form.args[0]).name, **_timing(find, parts)}


def _move(find: Finder, form: Form) -> object:
    if len(form.args) < 2:
        raise ProgramError("(move) takes a meeting and a new day or time")
    meeting = find.meeting(form.args[0])
    parts = named_arguments(form.args[1:], ("on", "at"))
    start = meeting.span.start
    when: date = times.day(parts["on"], find.world) if "on" in parts else start.date()
    moment: time = times.clock_time(parts["at"]) if "at" in parts else start.time()
    return _effect("move", meeting, to=show_moment(datetime.combine(when, moment)))


def _delay(find: Finder, form: Form) -> object:
    meeting, length = _meeting_and_duration(find, form)
    return _effect("delay", meeting, to=show_moment(meeting.span.start + length))


def _extend(find: Finder, form: Form) -> object:
    meeting, length = _meeting_and_duration(find, form)
    return _effect("extend", meeting, minutes=_minutes(meeting.span.length + length))


def _shorten(find: Finder, form: Form) -> object:
    meeting, length = _meeting_and_duration(find, form)
    if length >= meeting.span.length:
        raise ProgramError(f"{meeting} takes only {_minutes(meeting.span.length)} minutes")
    return _effect("shorten", meeting, minutes=_minutes(meeting.span.length - length))


def _remind(find: Finder, form: Form) -> object:
    if len(form.args) == 1:
        meeting, before = find.meeting(form.args[0]), timedelta(minutes=10)
    else:
        meeting, before = _meeting_and_duration(find, form)
    return _effect("remind", meeting, at=show_moment(meeting.span.start - before))


def _rename(find: Finder, form: Form) -> object:
    meeting, title = _arguments(form, 2)
    return _effect("rename", find.meeting(meeting), title=quoted_text(title))


def _relocate(find: Finder, form: Form) -> object:
    meeting, place = _arguments(form, 2)
    return _effect("relocate", find.meeting(meeting), room=_place_name(find, find.place(place)))


def _guest_list(find: Finder, form: Form) -> object:
    if len(form.args) < 2:
        raise ProgramError(f"({form.head}) takes a meeting and people")
    guests = find.everyone(form.args[1:])
    return _effect(form.head, find.meeting(form.args[0]), people=_names(find, guests))


def _message(find: Finder, form: Form) -> object:
    if len(form.args) < 2:
        raise ProgramError("(message) takes people and a quoted string")
    guests = find.everyone(form.args[:-1])
    return {"action": "message", "to": _names(find, guests), "text": quoted_text(form.args[-1])}


def _respond_or_cancel(find: Finder, form: Form) -> object:
    node = only_argument(form)
    meetings = find.meetings(node) if _head(node) in MEETING_SETS else [find.meeting(node)]
    return {"action": form.head, "meetings": [str(meeting) for meeting in meetings]}


def _head(node: Node) -> str:
    return node.head if isinstance(node, Form) else ""


def _arguments(form: Form, count: int) -> Sequence[Node]:
    if len(form.args) != count:
        raise ProgramError(f"({form.head}) takes {count} arguments, not {len(form.args)}")
    return form.args


def _meeting_and_duration(find: Finder, form: Form) -> tuple[Meeting, timedelta]:
    meeting, length = _arguments(form, 2)
    return find.meeting(meeting), times.duration(length)


def _availability(find: Finder, form: Form) -> tuple[frozenset[str], str | None, times.Slot]:
    """Return the people or the room, and the slot, of `free` and `free-times`."""
    split = next(
        (i for i, node in enumerate(form.args) if _head(node) in ("on", "at", "after", "before", "for")),
        len(form.args),
    )
    subjects, slot = form.args[:split], times.slot(form.args[split:], find.world)
    if len(subjects) == 1 and find.is_room(subjects[0]):
        return frozenset(), find.room(subjects[0]).id, slot
    if not subjects:
        raise ProgramError(f"({form.head}) takes people or a room, and a day or a time")
    return frozenset(find.person(node).id for node in subjects), None, slot


def _timing(find: Finder, parts: dict[str, Node]) -> dict[str, object]:
    """Return the day (by default today), start (by default None) and duration of a new meeting or booking."""
    when = times.day(parts["on"], find.world) if "on" in parts else find.world.today
    length = times.duration(parts["for"]) if "for" in parts else times.DEFAULT_DURATION
    start = show_time(datetime.combine(when, times.clock_time(parts["at"]))) if "at" in parts else None
    return {"date": show_day(when), "start": start, "minutes": _minutes(length)}


def _effect(action: str, meeting: Meeting, **details: object) -> dict[str, object]:
    return {"action": action, "meeting": str(meeting), **details}


def _names(find: Finder, ids: Iterable[str]) -> list[str]:
    return sorted(find.world.people[key].name for key in ids)


def _place_name(find: Finder, place: str) -> str:
    return ONLINE if place == ONLINE else find.world.rooms[place].name


def _minutes(length: timedelta) -> int:
    return int(length.total_seconds()) // 60


_Operation = Callable[[Finder, Form], object]

_QUESTIONS: dict[str, _Operation] = {
    "list": _list,
    "count": _count,
    "any": _any,
    "what": _what,
    "when": lambda find, form: show_moment(find.meeting(only_argument(form)).span.start),
    "ends": lambda find, form: show_moment(find.meeting(only_argument(form)).span.end),
    "where": _where,
    "how-long": lambda find, form: _minutes(find.meeting(only_argument(form)).span.length),
    "total-time": _total_time,
    "who": _who,
    "attends": _attends,
    "free": _free,
    "free-times": _free_times,
    "email": lambda find, form: find.person(only_argument(form)).email,
    "team-of": lambda find, form: find.person(only_argument(form)).team,
    "capacity": lambda find, form: find.room(only_argument(form)).capacity,
}

_COMMANDS: dict[str, _Operation] = {
    "create": _create,
    "cancel": _respond_or_cancel,
    "accept": _respond_or_cancel,
    "decline": _respond_or_cancel,
    "move": _move,
    "delay": _delay,
    "extend": _extend,
    "shorten": _shorten,
    "remind": _remind,
    "rename": _rename,
    "relocate": _relocate,
    "invite": _guest_list,
    "uninvite": _guest_list,
    "message": _message,
    "book": _book,
}
