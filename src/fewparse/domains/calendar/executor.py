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


def _list(finder: Finder, form: Form) -> object:
    node = only_argument(form)
    if _head(node) in MEETING_SETS:
        return [str(meeting) for meeting in finder.meetings(node)]
    return [room.name for room in finder.rooms(node)]


def _count(finder: Finder, form: Form) -> object:
    node = only_argument(form)
    if _head(node) in MEETING_SETS:
        return len(finder.meetings(node))
    return len(finder.group(node) if _head(node) in GROUPS else finder.rooms(node))


def _any(finder: Finder, form: Form) -> object:
    node = only_argument(form)
    return bool(finder.meetings(node) if _head(node) in MEETING_SETS else finder.rooms(node))


def _what(finder: Finder, form: Form) -> object:
    node = only_argument(form)
    return finder.room(node).name if _head(node) in ("largest", "smallest") else str(finder.meeting(node))


def _where(finder: Finder, form: Form) -> object:
    return _place_name(finder, finder.meeting(only_argument(form)).room)


def _who(finder: Finder, form: Form) -> object:
    node = only_argument(form)
    return _names(finder, finder.group(node)) if _head(node) in GROUPS else finder.person(node).name


def _total_time(finder: Finder, form: Form) -> object:
    return sum(_minutes(meeting.span.length) for meeting in finder.meetings(only_argument(form)))


def _attends(finder: Finder, form: Form) -> object:
    person, meeting = _arguments(form, 2)
    return finder.person(person).id in finder.meeting(meeting).attendees


def _free(finder: Finder, form: Form) -> object:
    people, room, slot = _availability(finder, form)
    return slot.fits(list(finder.world.gaps(people, room, slot.within)))


def _free_times(finder: Finder, form: Form) -> object:
    people, room, slot = _availability(finder, form)
    gaps = finder.world.gaps(people, room, slot.within)
    return [str(gap) for gap in gaps if slot.need is None or gap.length >= slot.need]


def _create(finder: Finder, form: Form) -> object:
    rest = form.args
    title = "Meeting"
    if rest and isinstance(rest[0], Text):
        title, rest = quoted_text(rest[0]), rest[1:]
    guests: list[str] = []
    if rest and isinstance(rest[0], Form) and rest[0].head == "with":
        guests, rest = _names(finder, finder.everyone(rest[0].args)), rest[1:]
    if len(rest) == len(form.args):
        raise ProgramError("(create) needs a title or guests")
    parts = named_arguments(rest, ("on", "at", "for", "in"))
    place = _place_name(finder, finder.place(parts["in"])) if "in" in parts else None
    return {"action": "create", "title": title, "with": guests, **_timing(finder, parts), "room": place}


def _book(finder: Finder, form: Form) -> object:
    if len(form.args) < 2:
        raise ProgramError("(book) takes a room and a day or a time")
    parts = named_arguments(form.args[1:], ("on", "at", "for"))
    if not parts.keys() - {"for"}:
        raise ProgramError("(book) needs a day or a time")
    return {"action": "book", "room": finder.room(form.args[0]).name, **_timing(finder, parts)}


def _move(finder: Finder, form: Form) -> object:
    if len(form.args) < 2:
        raise ProgramError("(move) takes a meeting and a new day or time")
    meeting = finder.meeting(form.args[0])
    parts = named_arguments(form.args[1:], ("on", "at"))
    start = meeting.span.start
    when: date = times.day(parts["on"], finder.world) if "on" in parts else start.date()
    moment: time = times.clock_time(parts["at"]) if "at" in parts else start.time()
    return _effect("move", meeting, to=show_moment(datetime.combine(when, moment)))


def _delay(finder: Finder, form: Form) -> object:
    meeting, length = _meeting_and_duration(finder, form)
    return _effect("delay", meeting, to=show_moment(meeting.span.start + length))


def _extend(finder: Finder, form: Form) -> object:
    meeting, length = _meeting_and_duration(finder, form)
    return _effect("extend", meeting, minutes=_minutes(meeting.span.length + length))


def _shorten(finder: Finder, form: Form) -> object:
    meeting, length = _meeting_and_duration(finder, form)
    if length >= meeting.span.length:
        raise ProgramError(f"{meeting} takes only {_minutes(meeting.span.length)} minutes")
    return _effect("shorten", meeting, minutes=_minutes(meeting.span.length - length))


def _remind(finder: Finder, form: Form) -> object:
    if len(form.args) == 1:
        meeting, before = finder.meeting(form.args[0]), timedelta(minutes=10)
    else:
        meeting, before = _meeting_and_duration(finder, form)
    return _effect("remind", meeting, at=show_moment(meeting.span.start - before))


def _rename(finder: Finder, form: Form) -> object:
    meeting, title = _arguments(form, 2)
    return _effect("rename", finder.meeting(meeting), title=quoted_text(title))


def _relocate(finder: Finder, form: Form) -> object:
    meeting, place = _arguments(form, 2)
    return _effect("relocate", finder.meeting(meeting), room=_place_name(finder, finder.place(place)))


def _guest_list(finder: Finder, form: Form) -> object:
    if len(form.args) < 2:
        raise ProgramError(f"({form.head}) takes a meeting and people")
    guests = finder.everyone(form.args[1:])
    return _effect(form.head, finder.meeting(form.args[0]), people=_names(finder, guests))


def _message(finder: Finder, form: Form) -> object:
    if len(form.args) < 2:
        raise ProgramError("(message) takes people and a quoted string")
    guests = finder.everyone(form.args[:-1])
    return {"action": "message", "to": _names(finder, guests), "text": quoted_text(form.args[-1])}


def _respond_or_cancel(finder: Finder, form: Form) -> object:
    node = only_argument(form)
    meetings = finder.meetings(node) if _head(node) in MEETING_SETS else [finder.meeting(node)]
    return {"action": form.head, "meetings": [str(meeting) for meeting in meetings]}


def _head(node: Node) -> str:
    return node.head if isinstance(node, Form) else ""


def _arguments(form: Form, count: int) -> Sequence[Node]:
    if len(form.args) != count:
        raise ProgramError(f"({form.head}) takes {count} arguments, not {len(form.args)}")
    return form.args


def _meeting_and_duration(finder: Finder, form: Form) -> tuple[Meeting, timedelta]:
    meeting, length = _arguments(form, 2)
    return finder.meeting(meeting), times.duration(length)


def _availability(finder: Finder, form: Form) -> tuple[frozenset[str], str | None, times.Slot]:
    """Return the people or the room, and the slot, of `free` and `free-times`."""
    split = next(
        (i for i, node in enumerate(form.args) if _head(node) in ("on", "at", "after", "before", "for")),
        len(form.args),
    )
    subjects, slot = form.args[:split], times.slot(form.args[split:], finder.world)
    if len(subjects) == 1 and finder.is_room(subjects[0]):
        return frozenset(), finder.room(subjects[0]).id, slot
    if not subjects:
        raise ProgramError(f"({form.head}) takes people or a room, and a day or a time")
    return frozenset(finder.person(node).id for node in subjects), None, slot


def _timing(finder: Finder, parts: dict[str, Node]) -> dict[str, object]:
    """Return the day (by default today), start (by default None) and duration of a new meeting or booking."""
    when = times.day(parts["on"], finder.world) if "on" in parts else finder.world.today
    length = times.duration(parts["for"]) if "for" in parts else times.DEFAULT_DURATION
    start = show_time(datetime.combine(when, times.clock_time(parts["at"]))) if "at" in parts else None
    return {"date": show_day(when), "start": start, "minutes": _minutes(length)}


def _effect(action: str, meeting: Meeting, **details: object) -> dict[str, object]:
    return {"action": action, "meeting": str(meeting), **details}


def _names(finder: Finder, ids: Iterable[str]) -> list[str]:
    return sorted(finder.world.people[key].name for key in ids)


def _place_name(finder: Finder, place: str) -> str:
    return ONLINE if place == ONLINE else finder.world.rooms[place].name


def _minutes(length: timedelta) -> int:
    return int(length.total_seconds()) // 60


_Operation = Callable[[Finder, Form], object]

_QUESTIONS: dict[str, _Operation] = {
    "list": _list,
    "count": _count,
    "any": _any,
    "what": _what,
    "when": lambda finder, form: show_moment(finder.meeting(only_argument(form)).span.start),
    "ends": lambda finder, form: show_moment(finder.meeting(only_argument(form)).span.end),
    "where": _where,
    "how-long": lambda finder, form: _minutes(finder.meeting(only_argument(form)).span.length),
    "total-time": _total_time,
    "who": _who,
    "attends": _attends,
    "free": _free,
    "free-times": _free_times,
    "email": lambda finder, form: finder.person(only_argument(form)).email,
    "team-of": lambda finder, form: finder.person(only_argument(form)).team,
    "capacity": lambda finder, form: finder.room(only_argument(form)).capacity,
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
