"""Executes programs of the Overnight language: `denote` never raises, whatever the program is.

An applied lambda means its body with the argument written for the variable, as text: outermost first, and without
renaming, so that a variable which nothing binds where the argument stands can be captured where it lands. Nothing
is rewritten, though. Scopes say what each variable has been replaced by, an argument is evaluated when its value
is first needed, and its result is shared wherever it lands, unless it depends on a variable captured there.

Only forms that stand for values are replaced: `(string (var x))` and `(call (var f) …)` are malformed.
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from fewparse.datasets.overnight.functions import Listing, Result, Run, call
from fewparse.datasets.overnight.reading import Expression, read, shown
from fewparse.datasets.overnight.values import Value, read_value, text_of
from fewparse.datasets.overnight.world import World, load_world
from fewparse.errors import ExecutionError


@dataclass(frozen=True)
class Denotation:
    """What a program denotes: values sorted by their text, or the reason why there are none."""

    values: tuple[Value, ...] = ()
    error: str | None = None

    @property
    def text(self) -> str:
        """The denotation in the form in which denotations are published; `error` where there is none."""
        if self.error is not None:
            return "error"
        return f"({' '.join(['list', *map(text_of, self.values)])})"


class Located(NamedTuple):
    """An expression and what its variables mean."""

    expression: Expression
    scope: "Scope"


@dataclass(eq=False, slots=True)
class Bound:
    """A variable that stands for an argument, in front of the `rest` of the scope.

    `depth` is the number of lambdas around the body, this one included.
    """

    name: str
    argument: Located
    rest: "Scope"
    depth: int
    known: bool = False
    result: Result = None


@dataclass(eq=False, slots=True)
class Moved:
    """The scope of an argument that has been written for a variable.

    What its variables mean is settled where it came from (`own`). Only if they mean nothing there do they fall
    to the lambdas between that place and where it landed: those of `place` that are deeper than `above`.
    """

    own: "Scope"
    place: "Scope"
    depth: int
    above: int
    captured: bool = False


Scope: TypeAlias = Bound | Moved | None


def moved(bound: Bound, place: Scope) -> Moved:
    """The scope of the argument of a variable that stands in a place."""
    return Moved(bound.argument.scope, place, depth_of(place), bound.depth)


def depth_of(scope: Scope) -> int:
    """How many lambdas stand around an expression."""
    return 0 if scope is None else scope.depth


class Evaluation:
    """The execution of one program. Evaluators yield what they need first, so that no stack overflows."""

    def __init__(self, world: World) -> None:
        self.run = Run(world)

    def result(self, program: Expression) -> Result:
        """What a program evaluates to."""
        waiting = [self.evaluate(Located(program, None))]
        result: Result = None
        while waiting:
            try:
                needed = waiting[-1].send(result)
            except StopIteration as finished:
                waiting.pop()
                result = finished.value
            else:
                waiting.append(self.evaluate(needed))
                result = None
        return result

    def evaluate(self, located: Located) -> Generator[Located, Result, Result]:
        """The result of an expression."""
        expression, scope = self.body(located)
        self.run.spend(1)
        match expression:
            case ("call", str(name), *arguments):
                results = []
                for argument in arguments:
                    results.append((yield Located(argument, scope)))
                return call(self.run, name, results)
            case ("var", str(name)):
                bound = self.find(name, scope)
                if bound.known:
                    return bound.result
                inside = moved(bound, scope)
                result = yield Located(bound.argument.expression, inside)
                if not inside.captured:
                    bound.known, bound.result = True, result
                return result
            case ("string", str(text)):
                return text
            case _:
                return read_value(expression)

    def body(self, located: Located) -> Located:
        """An expression that is no application: what is left of one when its lambdas have been applied."""
        expression, scope = located
        while isinstance(expression, tuple) and expression and isinstance(expression[0], tuple):
            if len(expression) != 2:
                raise ExecutionError(f"a lambda takes 1 argument, not {len(expression) - 1}")
            argument = Located(expression[1], scope)
            (name, expression), scope = self.head(Located(expression[0], scope))
            scope = Bound(name, argument, scope, depth_of(scope) + 1)
        return Located(expression, scope)

    def head(self, located: Located) -> tuple[tuple[str, Expression], Scope]:
        """The variable and the body of the lambda that an applied expression is, or is written for; its scope."""
        expression, scope = located
        while True:
            self.run.spend(1)
            match expression:
                case ("lambda", str(name), body):
                    return (name, body), scope
                case ("var", str(name)):
                    bound = self.find(name, scope)
                    expression, scope = bound.argument.expression, moved(bound, scope)
                case _:
                    raise ExecutionError("only a lambda of one variable can be applied")

    def find(self, name: str, scope: Scope) -> Bound:
        """What a variable stands for in a scope."""
        left: list[tuple[Moved, int]] = []
        above = 0
        while True:
            self.run.spend(1)
            if scope is None or scope.depth <= above:
                if not left:
                    raise ExecutionError(f"nothing binds the variable `{shown(name)}`")
                landed, above = left.pop()
                landed.captured = True
                scope, above = landed.place, max(above, landed.above)
            elif isinstance(scope, Moved):
                left.append((scope, above))
                scope = scope.own
            elif scope.name == name:
                return scope
            else:
                scope = scope.rest


def denote(program: str, world: World) -> Denotation:
    """What a program denotes in a world. Any text has a denotation, if only an error."""
    try:
        result = Evaluation(world).result(read(program))
        if not isinstance(result, Listing):
            raise ExecutionError("the outermost call must be `listValue`")
    except ExecutionError as error:
        return Denotation(error=error.message)
    return Denotation(tuple(result))


def answer(name: str, program: str) -> str:
    """The text of what a program denotes in one of the worlds that come with the package."""
    denotation = denote(program, load_world(name))
    if denotation.error is not None:
        raise ExecutionError(denotation.error)
    return denotation.text


basketball = partial(answer, "basketball")
blocks = partial(answer, "blocks")
calendar = partial(answer, "calendar")
housing = partial(answer, "housing")
publications = partial(answer, "publications")
recipes = partial(answer, "recipes")
restaurants = partial(answer, "restaurants")
socialnetwork = partial(answer, "socialnetwork")
