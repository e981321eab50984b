"""Read days, times of day, durations and time slots from the arguments of programs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from fewparse.domains.calendar.reader import Form, Node, ProgramError, Word, named_arguments, only_argument, word
from fewparse.domains.calendar.world import DAY_END, DAY_START, Interval, World

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKS = {"last-week": -7, "this-week": 0, "next-week": 7}
DAY_PARTS = {"morning": (0, 12), "afternoon": (12, 18)}
DEFAULT_DURATION = timedelta(minutes=30)

_TIME = re.compile(r"([1-9]|1[0-2])(?::([0-5][0-9]))?(am|pm)")
_NUMBER = re.compile(r"[1-9][0-9]{0,2}")


@dataclass(frozen=True)
class Slot:
    """A time slot: an interval within one day, and the duration needed in it; None means the whole interval."""

    within: Interval
    need: timedelta | None

    def fits(self, gaps: Sequence[Interval]) -> bool:
        """Return whether one of the free gaps is long enough."""
        return any(gap.length >= (self.need or self.within.length) for gap in gaps)


def number(node: Node) -> int:
    """Return a number from 1 to 999."""
    text = word(node, "a number")
    if not _NUMBER.fullmatch(text):
        raise ProgramError(f"expected a number from 1 to 999, found {text}")
    return int(text)


def is_time(node: Node) -> bool:
    """Return whether a node is a time of day."""
    return isinstance(node, Word) and (node.word == "noon" or _TIME.fullmatch(node.word) is not None)


def clock_time(node: Node) -> time:
    """Return a time of day such as `9:30am` or `noon`."""
    text = word(node, "a time")
    if text == "noon":
        return time(12)
    match = _TIME.fullmatch(text)
    if match is None:
        raise ProgramError(f"expected a time such as 9:30am, found {text}")
    return time(int(match[1]) % 12 + (12 if match[3] == "pm" else 0), int(match[2] or 0))


def day(node: Node, world: World) -> date:
    """Return a day: a weekday is the next one after today, and with `last-` the latest one before today."""
    text = word(node, "a day")
    relative = {"yesterday": -1, "today": 0, "tomorrow": 1}
    if text in relative:
        return world.today + timedelta(days=relative[text])
    past = text.startswith("last-")
    name = text.removeprefix("last-")
    if name in WEEKDAYS:
        ahead = (WEEKDAYS.index(name) - world.today.weekday() - 1) % 7 + 1
        return world.today + timedelta(days=ahead - 7 if past and ahead < 7 else -7 if past else ahead)
    month, _, number_text = text.partition("-")
    if month in MONTHS and _NUMBER.fullmatch(number_text):
        try:
            return date(world.today.year, MONTHS.index(month) + 1, int(number_text))
        except ValueError:
            raise ProgramError(f"there is no {text} in {world.today.year}") from None
    raise ProgramError(f"expected a day such as tomorrow, friday or march-14, found {text}")


def days(node: Node, world: World) -> range:
    """Return the ordinals of a day, or of a week from Monday to Sunday."""
    if isinstance(node, Word) and node.word in WEEKS:
        monday = world.today.toordinal() - world.today.weekday() + WEEKS[node.word]
        return range(monday, monday + 7)
    ordinal = day(node, world).toordinal()
    return range(ordinal, ordinal + 1)


def duration(node: Node) -> timedelta:
    """Return the duration of `(minutes N)` or `(hours N)`."""
    if isinstance(node, Form) and node.head in ("minutes", "hours"):
        return timedelta(**{node.head: number(only_argument(node))})
    raise ProgramError(f"expected a duration such as (minutes 30), found {node}")


def slot(nodes: Sequence[Node], world: World) -> Slot:
    """Read a slot from (on), by default today; (at), or (after) and (before); and (for), the duration."""
    parts = named_arguments(nodes, ("on", "at", "after", "before", "for"))
    if not parts.keys() - {"for"}:
        raise ProgramError("a slot needs a day or a time")
    when = day(parts["on"], world) if "on" in parts else world.today
    need = duration(parts["for"]) if "for" in parts else None
    start, end = _hour(when, DAY_START), _hour(when, DAY_END)
    at = parts.get("at")
    if at is not None:
        if "after" in parts or "before" in parts:
            raise ProgramError("a slot has either (at) or (after) and (before)")
        if isinstance(at, Word) and at.word in DAY_PARTS:
            first, last = DAY_PARTS[at.word]
            start, end = max(start, _hour(when, first)), min(end, _hour(when, last))
        else:
            now = isinstance(at, Word) and at.word == "now"
            start = datetime.combine(when, world.now.time() if now else clock_time(at))
            end = start + (need or DEFAULT_DURATION)
    if "after" in parts:
        start = datetime.combine(when, clock_time(parts["after"]))
    if "before" in parts:
        end = datetime.combine(when, clock_time(parts["before"]))
    if start >= end:
        raise ProgramError("the slot ends before it starts")
    return Slot(Interval(start, end), need)


def _hour(when: date, hour: int) -> datetime:
    return datetime.combine(when, time(hour))
