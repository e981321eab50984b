"""The functions of the Overnight language, over values and a world.

Arguments and results are of kinds that are never converted into each other unless a function says so: a single
value, a list (tuple), a string (str), the integer of `.size` (int), and nothing (None), which is the superlative
of an empty list.
"""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite, nan
from operator import eq, ge, gt, le, lt
from typing import NamedTuple, TypeAlias

from fewparse.datasets.overnight.reading import shown
from fewparse.datasets.overnight.values import (
    COUNT,
    TRUE,
    Entity,
    Number,
    Text,
    Value,
    degree,
    is_numeric,
    text_of,
    type_of,
)
from fewparse.datasets.overnight.world import World
from fewparse.errors import ExecutionError

MOST_WORK = 1_000_000
COMPARISONS: dict[str, Callable[[float, float], bool]] = {"=": eq, "<": lt, ">": gt, "<=": le, ">=": ge}


class Listing(tuple[Value, ...]):
    """The list that `listValue` makes, the only one that is a denotation."""

    __slots__ = ()


Result: TypeAlias = Value | tuple[Value, ...] | str | int | None


class Run:
    """A world during the execution of one program, and the work that the program may still cause."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.left = MOST_WORK

    def spend(self, work: int) -> None:
        """Count steps taken and members of lists touched; too many of them end the program."""
        self.left -= work
        if self.left < 0:
            raise ExecutionError("too much work")

    def values(self, x: Value, name: str) -> tuple[Value, ...]:
        """The values that x has of a property that things of its type can have."""
        found = self.world.look_up(x, name)
        self.world.check_first(name, x)
        self.spend(1 + len(found))
        return found


def members(argument: Result) -> tuple[Value, ...]:
    """An argument that must be a list."""
    if not isinstance(argument, tuple):
        raise ExecutionError(f"a list is needed, not {kind(argument)}")
    return argument


def single(argument: Result) -> Value:
    """An argument that must be a single value."""
    if argument is None or isinstance(argument, tuple | str | int):
        raise ExecutionError(f"a single value is needed, not {kind(argument)}")
    return argument


def members_or_single(argument: Result) -> tuple[Value, ...]:
    """An argument that is a list, or a single value that stands for the list of it."""
    return argument if isinstance(argument, tuple) else (single(argument),)


def string(argument: Result) -> str:
    """An argument that must be a string."""
    if not isinstance(argument, str):
        raise ExecutionError(f"a string is needed, not {kind(argument)}")
    return argument


def kind(argument: Result) -> str:
    """What an error calls an argument."""
    match argument:
        case None:
            return "nothing"
        case tuple():
            return "a list"
        case str():
            return f"the string `{shown(argument)}`"
        case int():
            return "a size"
        case _:
            return f"the value {shown(text_of(argument))}"


def singleton(_: Run, value: Result) -> Result:
    """The list of one value."""
    return (single(value),)


def reverse(_: Run, name: Result) -> Result:
    """The property that leads back."""
    name = string(name)
    return name[1:] if name.startswith("!") else f"!{name}"


def domain(run: Run, name: Result) -> Result:
    """All entities of the type that has a property."""
    return get_property(run, Entity(run.world.signature(string(name)).first), "!type")


def get_property(run: Run, things: Result, name: Result) -> Result:
    """The distinct values of a property of any of the things, of which there must be one."""
    things, name = members_or_single(things), string(name)
    found = tuple(dict.fromkeys(value for x in things for value in run.values(x, name)))
    if not found:
        raise ExecutionError(f"no value of the property `{shown(name)}`")
    return found


def keep(run: Run, things: Result, name: Result, sign: Result = "=", wanted: Result = (TRUE,)) -> Result:
    """The entities among the things some value of which compares with some of the wanted values."""
    things, name, sign, wanted = members(things), string(name), string(sign), members_or_single(wanted)
    for value in wanted:
        run.world.check_second(name, value)
    holds = condition(sign, wanted)
    return tuple(x for x in things if isinstance(x, Entity) and holds(run.values(x, name)))


def condition(sign: str, wanted: tuple[Value, ...]) -> Callable[[tuple[Value, ...]], bool]:
    """What `filter` asks of the values of each entity; an unknown sign never holds."""
    if sign in ("=", "!="):
        distinct = frozenset(wanted)
        return lambda values: distinct.isdisjoint(values) is (sign == "!=")
    if sign not in COMPARISONS:
        return lambda _: False
    compare = COMPARISONS[sign]
    ours, theirs = ("min", "max") if sign.startswith("<") else ("max", "min")
    bounds: list[float] = []

    def holds(values: tuple[Value, ...]) -> bool:
        if not bounds:
            bounds.append(extreme(theirs, wanted))
        return compare(extreme(ours, values), bounds[0])

    return holds


def extreme(mode: str, values: tuple[Value, ...]) -> float:
    """The largest or smallest degree; NaN, which compares with nothing, where there are no values."""
    return (max if mode == "max" else min)(map(degree, values), default=nan)


def ensure_numeric_property(run: Run, name: Result) -> Result:
    """The property itself, if its values are numeric."""
    if not is_numeric(run.world.signature(string(name)).second):
        raise ExecutionError(f"the property `{shown(string(name))}` is not numeric")
    return name


def ensure_numeric_entity(_: Run, things: Result) -> Result:
    """The list itself, if its first member is numeric."""
    things = members_or_single(things)
    if not things:
        raise ExecutionError("a number, date or time is needed, not an empty list")
    if not is_numeric(type_of(things[0])):
        raise ExecutionError(f"{shown(text_of(things[0]))} is not numeric")
    return tuple(things)


def superlative(run: Run, things: Result, mode: Result, name: Result) -> Result:
    """The things with the best degree of a property."""
    things, mode, name = members(things), string(mode), string(name)
    return best(mode, ((x, extreme(mode, run.values(x, name))) for x in things))


def best(mode: str, scored: Iterable[tuple[Value, float]]) -> Result:
    """The things of the best score. The first one leads whatever its score is, and nobody beats NaN."""
    better = gt if mode == "max" else lt
    leading: list[Value] = []
    record = nan
    for x, score in scored:
        if not leading or better(score, record):
            leading, record = [x], score
        elif score == record:
            leading.append(x)
    return tuple(leading) or None


def counting(run: Run, name: str, among: Result) -> Callable[[Value], int]:
    """How many values of a property a thing has, with repetition, `among` a list if there is one."""
    wanted = None if among is None else frozenset(members(among))
    for value in () if among is None else members(among):
        run.world.check_second(name, value)
    if is_numeric(run.world.signature(name).second):
        raise ExecutionError(f"values of the numeric property `{shown(name)}` are not counted")
    if wanted is None:
        return lambda x: len(run.values(x, name))
    return lambda x: sum(value in wanted for value in run.values(x, name))


def count_superlative(run: Run, things: Result, mode: Result, name: Result, among: Result = None) -> Result:
    """The things with the most, or the fewest, values of a property."""
    things, mode, count = members(things), string(mode), counting(run, string(name), among)
    return best(mode, ((x, count(x)) for x in things))


def count_comparative(
    run: Run, things: Result, name: Result, sign: Result, limit: Result, among: Result = None
) -> Result:
    """The things whose number of values of a property compares with a limit."""
    things, sign, limit, count = members(things), string(sign), single(limit), counting(run, string(name), among)
    if not isinstance(limit, Number):
        raise ExecutionError(f"a number is needed, not {kind(limit)}")
    if not things:
        return ()
    if (compare := COMPARISONS.get(sign)) is None:
        raise ExecutionError(f"unknown comparison `{shown(sign)}`")
    return tuple(x for x in things if compare(count(x), limit.magnitude))


def concat(_: Run, first: Result, second: Result) -> Result:
    """Two different values, or two different lists, of one type as one list."""
    if isinstance(first, tuple) is not isinstance(second, tuple):
        raise ExecutionError(f"{kind(first)} and {kind(second)} cannot be joined")
    first, second = members_or_single(first), members_or_single(second)
    if first and second and len({type_of(value) for value in (*first, *second)}) > 1:
        raise ExecutionError("values of different types cannot be joined")
    if tuple(first) == tuple(second):
        raise ExecutionError("what is joined is twice the same")
    return (*first, *second)


def aggregate(_: Run, mode: Result, numbers: Result) -> Result:
    """The sum or the average, in the unit of the first number."""
    mode, numbers = string(mode), members(numbers)
    if mode not in ("sum", "avg"):
        raise ExecutionError(f"unknown aggregate `{shown(mode)}`")
    total, unit = 0.0, None
    for number in numbers:
        if not isinstance(number, Number):
            raise ExecutionError(f"{shown(text_of(number))} is not a number")
        total, unit = total + number.magnitude, unit or number.unit
    if unit is None:
        raise ExecutionError("an empty list has no sum or average")
    if not isfinite(total):
        raise ExecutionError("the sum is too large")
    return (Number(total if mode == "sum" else total / len(numbers), unit),)


def size(_: Run, things: Result) -> Result:
    """How many members a list has."""
    return len(members(things))


def list_value(_: Run, result: Result) -> Result:
    """Members sorted by their text; anything but a list becomes the only member of one."""
    if isinstance(result, tuple):
        return Listing(sorted(result, key=text_of))
    if isinstance(result, str):
        return Listing((Text(result),))
    if isinstance(result, int):
        return Listing((Number(float(result), COUNT),))
    return Listing((single(result),))


class Function(NamedTuple):
    """What a name stands for, and how many arguments it may have."""

    apply: Callable[..., Result]
    arities: tuple[int, ...]


FUNCTIONS = {
    "singleton": Function(singleton, (1,)),
    "reverse": Function(reverse, (1,)),
    "domain": Function(domain, (1,)),
    "getProperty": Function(get_property, (2,)),
    "filter": Function(keep, (2, 4)),
    "ensureNumericProperty": Function(ensure_numeric_property, (1,)),
    "ensureNumericEntity": Function(ensure_numeric_entity, (1,)),
    "superlative": Function(superlative, (3,)),
    "countSuperlative": Function(count_superlative, (3, 4)),
    "countComparative": Function(count_comparative, (4, 5)),
    "concat": Function(concat, (2,)),
    "aggregate": Function(aggregate, (2,)),
    ".size": Function(size, (1,)),
    "listValue": Function(list_value, (1,)),
}


def call(run: Run, name: str, arguments: Sequence[Result]) -> Result:
    """Apply a function by its name."""
    if (function := FUNCTIONS.get(name)) is None:
        raise ExecutionError(f"unknown function `{shown(name)}`")
    if len(arguments) not in function.arities:
        wanted = " or ".join(map(str, function.arities))
        raise ExecutionError(f"`{name}` has {len(arguments)} arguments and takes {wanted}")
    run.spend(1 + sum(len(argument) for argument in arguments if isinstance(argument, tuple)))
    return function.apply(run, *arguments)
