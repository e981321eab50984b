"""Execute Overnight programs: `denote` returns a denotation for every text and never raises.

An applied lambda is its body with the argument substituted for the variable: in normal order (outermost first) and
without renaming, so that a free variable of the argument can be captured at the place of substitution. This is
implemented without rewriting the program: a scope maps each variable to its argument, an argument is evaluated
when its value is first needed (call by need), and the result is shared by all its occurrences, unless it depends
on a captured variable.

Only value expressions are substituted: `(string (var x))` and `(call (var f) …)` are malformed.
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from fewparse.datasets.overnight.functions import Execution, ListValue, Result, call
from fewparse.datasets.overnight.values import Expression, Value, read_expression, read_value, text_of, truncated
from fewparse.datasets.overnight.world import World, load_world
from fewparse.errors import ExecutionError


@dataclass(frozen=True)
class Denotation:
    """The denotation of a program: values sorted by their text, or the reason why there are none."""

    values: tuple[Value, ...] = ()
    error: str | None = None

    @property
    def text(self) -> str:
        """The denotation in the format of the published denotations; `error` if there is none."""
        if self.error is not None:
            return "error"
        return f"({' '.join(['list', *map(text_of, self.values)])})"


class Closure(NamedTuple):
    """An expression with the scope of its variables."""

    expression: Expression
    scope: "Scope"


@dataclass(eq=False, slots=True)
class Binding:
    """A variable bound to an argument, in front of the `rest` of the scope.

    `depth` is the number of lambdas around the body, including this one.
    """

    name: str
    argument: Closure
    rest: "Scope"
    depth: int
    evaluated: bool = False
    result: Result = None


@dataclass(eq=False, slots=True)
class Substituted:
    """The scope of an argument that has been substituted for a variable.

    Its variables are resolved in the scope of the argument (`own`) first. Those that are free there are captured
    by the lambdas between that scope and the place of substitution: those of `place` that are deeper than `above`.
    """

    own: "Scope"
    place: "Scope"
    depth: int
    above: int
    captured: bool = False


Scope: TypeAlias = Binding | Substituted | None


def substitute(binding: Binding, place: Scope) -> Substituted:
    """Return the scope of a binding's argument at the place of its variable."""
    return Substituted(binding.argument.scope, place, depth_of(place), binding.depth)


def depth_of(scope: Scope) -> int:
    """Return the number of lambdas around an expression."""
    return 0 if scope is None else scope.depth


class Evaluator:
    """Evaluates one program. Evaluations are coroutines on an explicit stack, so that any depth is possible."""

    def __init__(self, world: World) -> None:
        self.run = Execution(world)

    def result(self, program: Expression) -> Result:
        """Return the result of a program."""
        stack = [self.evaluate(Closure(program, None))]
        result: Result = None
        while stack:
            try:
                needed = stack[-1].send(result)
            except StopIteration as finished:
                stack.pop()
                result = finished.value
            else:
                stack.append(self.evaluate(needed))
                result = None
        return result

    def evaluate(self, closure: Closure) -> Generator[Closure, Result, Result]:
        """Evaluate an expression: yield the closures that are needed first, and return the result."""
        expression, scope = self.reduce(closure)
        self.run.spend(1)
        match expression:
            case ("call", str(name), *arguments):
                results = []
                for argument in arguments:
                    results.append((yield Closure(argument, scope)))
                return call(self.run, name, results)
            case ("var", str(name)):
                binding = self.resolve(name, scope)
                if binding.evaluated:
                    return binding.result
                inner = substitute(binding, scope)
                result = yield Closure(binding.argument.expression, inner)
                if not inner.captured:
                    binding.evaluated, binding.result = True, result
                return result
            case ("string", str(text)):
                return text
            case _:
                return read_value(expression)

    def reduce(self, closure: Closure) -> Closure:
        """Apply lambdas (beta reduction) until the expression is not an application."""
        expression, scope = closure
        while isinstance(expression, tuple) and expression and isinstance(expression[0], tuple):
            if len(expression) != 2:
                raise ExecutionError(f"a lambda takes 1 argument, found {len(expression) - 1}")
            argument = Closure(expression[1], scope)
            (name, expression), scope = self.find_lambda(Closure(expression[0], scope))
            scope = Binding(name, argument, scope, depth_of(scope) + 1)
        return Closure(expression, scope)

    def find_lambda(self, closure: Closure) -> tuple[tuple[str, Expression], Scope]:
        """Return the variable, body and scope of the lambda that an applied expression is or refers to."""
        expression, scope = closure
        while True:
            self.run.spend(1)
            match expression:
                case ("lambda", str(name), body):
                    return (name, body), scope
                case ("var", str(name)):
                    binding = self.resolve(name, scope)
                    expression, scope = binding.argument.expression, substitute(binding, scope)
                case _:
                    raise ExecutionError("only a lambda with one variable can be applied")

    def resolve(self, name: str, scope: Scope) -> Binding:
        """Return the binding of a variable in a scope; raise `ExecutionError` if it is unbound."""
        left: list[tuple[Substituted, int]] = []
        above = 0
        while True:
            self.run.spend(1)
            if scope is None or scope.depth <= above:
                if not left:
                    raise ExecutionError(f"unbound variable `{truncated(name)}`")
                substituted, above = left.pop()
                substituted.captured = True
                scope, above = substituted.place, max(above, substituted.above)
            elif isinstance(scope, Substituted):
                left.append((scope, above))
                scope = scope.own
            elif scope.name == name:
                return scope
            else:
                scope = scope.rest


def denote(program: str, world: World) -> Denotation:
    """Return the denotation of a program in a world; for a text that is not a program, it is an error."""
    try:
        result = Evaluator(world).result(read_expression(program))
        if not isinstance(result, ListValue):
            raise ExecutionError("the outermost call must be `listValue`")
    except ExecutionError as error:
        return Denotation(error=error.message)
    return Denotation(tuple(result))


def execute(world: str, program: str) -> str:
    """Return the text of a program's denotation in a bundled world; raise `ExecutionError` if it is an error."""
    denotation = denote(program, load_world(world))
    if denotation.error is not None:
        raise ExecutionError(denotation.error)
    return denotation.text


basketball = partial(execute, "basketball")
blocks = partial(execute, "blocks")
calendar = partial(execute, "calendar")
housing = partial(execute, "housing")
publications = partial(execute, "publications")
recipes = partial(execute, "recipes")
restaurants = partial(execute, "restaurants")
socialnetwork = partial(execute, "socialnetwork")
