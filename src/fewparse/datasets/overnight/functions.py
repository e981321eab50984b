"""The functions of SEMPRE's `SimpleWorld`, in which Overnight's lambda DCS programs are written.

The kinds of arguments and results are distinct, and functions do not convert between them unless stated: a single
value, a list (tuple), a string (str), the integer of `.size` (int), and null (None), which is the superlative of
an empty list.
"""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite, nan
from operator import eq, ge, gt, le, lt
from typing import NamedTuple, TypeAlias

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
    truncated,
    type_of,
)
from fewparse.datasets.overnight.world import World
from fewparse.errors import ExecutionError

MAX_STEPS = 1_000_000
COMPARISONS: dict[str, Callable[[float, float], bool]] = {"=": eq, "<": lt, ">": gt, "<=": le, ">=": ge}


class ListValue(tuple[Value, ...]):
    """The result of `listValue`, the only kind of list that is a denotation."""

    __slots__ = ()


Result: TypeAlias = Value | tuple[Value, ...] | str | int | None


class Execution:
    """The state of the execution of one program: its world and the steps that are left."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.steps_left = MAX_STEPS

    def spend(self, steps: int) -> None:
        """Count evaluation steps and list elements visited; raise `ExecutionError` beyond the limit."""
        self.steps_left -= steps
        if self.steps_left < 0:
            raise ExecutionError("too many steps")

    def values(self, x: Value, prop: str) -> tuple[Value, ...]:
        """Return the values of a property of x; raise `ExecutionError` if entities of its type do not have it."""
        values = self.world.look_up(x, prop)
        self.world.check_first(prop, x)
        self.spend(1 + len(values))
        return values


def as_list(argument: Result) -> tuple[Value, ...]:
    """Return a list argument; raise `ExecutionError` for any other kind."""
    if not isinstance(argument, tuple):
        raise ExecutionError(f"expected a list, found {describe(argument)}")
    return argument


def as_value(argument: Result) -> Value:
    """Return a single-value argument; raise `ExecutionError` for any other kind."""
    if argument is None or isinstance(argument, tuple | str | int):
        raise ExecutionError(f"expected a single value, found {describe(argument)}")
    return argument


def as_list_or_value(argument: Result) -> tuple[Value, ...]:
    """Return a list argument, or a single value as a list of one element."""
    return argument if isinstance(argument, tuple) else (as_value(argument),)


def as_string(argument: Result) -> str:
    """Return a string argument; raise `ExecutionError` for any other kind."""
    if not isinstance(argument, str):
        raise ExecutionError(f"expected a string, found {describe(argument)}")
    return argument


def describe(argument: Result) -> str:
    """Return the kind of an argument as written in an error message."""
    match argument:
        case None:
            return "null"
        case tuple():
            return "a list"
        case str():
            return f"the string `{truncated(argument)}`"
        case int():
            return "a size"
        case _:
            return f"the value {truncated(text_of(argument))}"


def singleton(_: Execution, value: Result) -> Result:
    """Return the list of one value."""
    return (as_value(value),)


def reverse(_: Execution, prop: Result) -> Result:
    """Return the reverse of a property."""
    prop = as_string(prop)
    return prop[1:] if prop.startswith("!") else f"!{prop}"


def domain(run: Execution, prop: Result) -> Result:
    """Return all entities of the type of a property's first argument."""
    return get_property(run, Entity(run.world.signature(as_string(prop)).first), "!type")


def get_property(run: Execution, objects: Result, prop: Result) -> Result:
    """Return the distinct values of a property of the objects (join); raise `ExecutionError` if there are none."""
    objects, prop = as_list_or_value(objects), as_string(prop)
    values = tuple(dict.fromkeys(value for x in objects for value in run.values(x, prop)))
    if not values:
        raise ExecutionError(f"no value of the property `{truncated(prop)}`")
    return values


def filter_entities(
    run: Execution, entities: Result, prop: Result, sign: Result = "=", references: Result = (TRUE,)
) -> Result:
    """Return the entities that have a value of a property for which the comparison with some reference holds."""
    entities, prop, sign = as_list(entities), as_string(prop), as_string(sign)
    references = as_list_or_value(references)
    for value in references:
        run.world.check_second(prop, value)
    holds = condition(sign, references)
    return tuple(x for x in entities if isinstance(x, Entity) and holds(run.values(x, prop)))


def condition(sign: str, references: tuple[Value, ...]) -> Callable[[tuple[Value, ...]], bool]:
    """Return the test of `filter` on the values of one entity; with an unknown sign it never holds."""
    if sign in ("=", "!="):
        distinct = frozenset(references)
        return lambda values: distinct.isdisjoint(values) is (sign == "!=")
    if sign not in COMPARISONS:
        return lambda _: False
    compare = COMPARISONS[sign]
    values_mode, references_mode = ("min", "max") if sign.startswith("<") else ("max", "min")
    bounds: list[float] = []

    def holds(values: tuple[Value, ...]) -> bool:
        if not bounds:  # computed only if an entity is tested, since it may raise
            bounds.append(extreme_degree(references_mode, references))
        return compare(extreme_degree(values_mode, values), bounds[0])

    return holds


def extreme_degree(mode: str, values: tuple[Value, ...]) -> float:
    """Return the largest or smallest degree; NaN for no values, so that every comparison is false."""
    return (max if mode == "max" else min)(map(degree, values), default=nan)


def ensure_numeric_property(run: Execution, prop: Result) -> Result:
    """Return the property; raise `ExecutionError` if its values are not numeric."""
    if not is_numeric(run.world.signature(as_string(prop)).second):
        raise ExecutionError(f"the property `{truncated(as_string(prop))}` is not numeric")
    return prop


def ensure_numeric_entity(_: Execution, values: Result) -> Result:
    """Return the list; raise `ExecutionError` if its first element is not numeric."""
    values = as_list_or_value(values)
    if not values:
        raise ExecutionError("expected a number, date or time, found an empty list")
    if not is_numeric(type_of(values[0])):
        raise ExecutionError(f"{truncated(text_of(values[0]))} is not numeric")
    return tuple(values)


def superlative(run: Execution, entities: Result, mode: Result, prop: Result) -> Result:
    """Return the entities with the extreme degree of a property."""
    entities, mode, prop = as_list(entities), as_string(mode), as_string(prop)
    return best(mode, ((x, extreme_degree(mode, run.values(x, prop))) for x in entities))


def best(mode: str, scored: Iterable[tuple[Value, float]]) -> Result:
    """Return the entities with the extreme score, or None if there are none.

    As in SEMPRE, a first entity with a score of NaN is the only result, since no later score is better than NaN.
    """
    better = gt if mode == "max" else lt
    leading: list[Value] = []
    record = nan
    for x, score in scored:
        if not leading or better(score, record):
            leading, record = [x], score
        elif score == record:
            leading.append(x)
    return tuple(leading) or None


def counter(run: Execution, prop: str, restrictors: Result) -> Callable[[Value], int]:
    """Return a function that counts the values of a property, with repetition, and only restrictors if given."""
    counted = None if restrictors is None else frozenset(as_list(restrictors))
    for value in () if restrictors is None else as_list(restrictors):
        run.world.check_second(prop, value)
    if is_numeric(run.world.signature(prop).second):
        raise ExecutionError(f"the values of the numeric property `{truncated(prop)}` cannot be counted")
    if counted is None:
        return lambda x: len(run.values(x, prop))
    return lambda x: sum(value in counted for value in run.values(x, prop))


def count_superlative(
    run: Execution, entities: Result, mode: Result, prop: Result, restrictors: Result = None
) -> Result:
    """Return the entities with the most, or the fewest, values of a property."""
    entities, mode, count = as_list(entities), as_string(mode), counter(run, as_string(prop), restrictors)
    return best(mode, ((x, count(x)) for x in entities))


def count_comparative(
    run: Execution, entities: Result, prop: Result, sign: Result, threshold: Result, restrictors: Result = None
) -> Result:
    """Return the entities for which the comparison of their number of values with a threshold holds."""
    entities, sign, threshold = as_list(entities), as_string(sign), as_value(threshold)
    count = counter(run, as_string(prop), restrictors)
    if not isinstance(threshold, Number):
        raise ExecutionError(f"expected a number, found {describe(threshold)}")
    if not entities:
        return ()
    if (compare := COMPARISONS.get(sign)) is None:
        raise ExecutionError(f"unknown comparison `{truncated(sign)}`")
    return tuple(x for x in entities if compare(count(x), threshold.magnitude))


def concat(_: Execution, first: Result, second: Result) -> Result:
    """Return the concatenation of two different values, or of two different lists, of one type."""
    if isinstance(first, tuple) is not isinstance(second, tuple):
        raise ExecutionError(f"{describe(first)} and {describe(second)} cannot be concatenated")
    first, second = as_list_or_value(first), as_list_or_value(second)
    if first and second and len({type_of(value) for value in (*first, *second)}) > 1:
        raise ExecutionError("values of different types cannot be concatenated")
    if tuple(first) == tuple(second):
        raise ExecutionError("the two arguments of `concat` are equal")
    return (*first, *second)


def aggregate(_: Execution, mode: Result, numbers: Result) -> Result:
    """Return the sum or the average of numbers, with the unit of the first one."""
    mode, numbers = as_string(mode), as_list(numbers)
    if mode not in ("sum", "avg"):
        raise ExecutionError(f"unknown aggregate `{truncated(mode)}`")
    total, unit = 0.0, None
    for number in numbers:
        if not isinstance(number, Number):
            raise ExecutionError(f"{truncated(text_of(number))} is not a number")
        total, unit = total + number.magnitude, unit or number.unit
    if unit is None:
        raise ExecutionError("an empty list has no sum or average")
    if not isfinite(total):
        raise ExecutionError("the sum is too large")
    return (Number(total if mode == "sum" else total / len(numbers), unit),)


def size(_: Execution, values: Result) -> Result:
    """Return the length of a list."""
    return len(as_list(values))


def list_value(_: Execution, result: Result) -> Result:
    """Return the elements sorted by their text; any other kind of argument becomes a list of one element."""
    if isinstance(result, tuple):
        return ListValue(sorted(result, key=text_of))
    if isinstance(result, str):
        return ListValue((Text(result),))
    if isinstance(result, int):
        return ListValue((Number(float(result), COUNT),))
    return ListValue((as_value(result),))


class Function(NamedTuple):
    """The implementation of a function, and its possible numbers of arguments."""

    apply: Callable[..., Result]
    arities: tuple[int, ...]


FUNCTIONS = {
    "singleton": Function(singleton, (1,)),
    "reverse": Function(reverse, (1,)),
    "domain": Function(domain, (1,)),
    "getProperty": Function(get_property, (2,)),
    "filter": Function(filter_entities, (2, 4)),
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


def call(run: Execution, name: str, arguments: Sequence[Result]) -> Result:
    """Apply the function of a name; raise `ExecutionError` if it is unknown or the arity is wrong."""
    if (function := FUNCTIONS.get(name)) is None:
        raise ExecutionError(f"unknown function `{truncated(name)}`")
    if len(arguments) not in function.arities:
        expected = " or ".join(map(str, function.arities))
        raise ExecutionError(f"`{name}` takes {expected} arguments, found {len(arguments)}")
    run.spend(1 + sum(len(argument) for argument in arguments if isinstance(argument, tuple)))
    return function.apply(run, *arguments)
