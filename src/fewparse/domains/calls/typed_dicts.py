"""Make functions with parameters of `typing.TypedDict` readable for pydantic.

Before Python 3.12, pydantic reads those of `typing_extensions` only: they are made again with that.
"""

import functools
import inspect
import operator
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import typing_extensions

Function = Callable[..., Any]


def readable(function: Function) -> Function:
    """Return a function, or one that calls it and whose annotations pydantic can read."""
    if sys.version_info >= (3, 12):
        return function
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # annotations may be any code; pydantic reports it
        return function
    changed = {name: modern(hint) for name, hint in hints.items() if modern(hint) is not hint}
    if not changed:
        return function

    @functools.wraps(function)
    def call(**arguments: Any) -> Any:
        return function(**arguments)

    signature = inspect.signature(function)
    parameters = [p.replace(annotation=changed.get(p.name, p.annotation)) for p in signature.parameters.values()]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {**hints, **changed}
    return call


def modern(hint: Any) -> Any:
    """Return a type with every `typing.TypedDict` made again; the same type if it has none."""
    if isinstance(hint, type) and typing.is_typeddict(hint):
        return rebuilt(hint) if type(hint).__module__ == "typing" else hint
    arguments = typing.get_args(hint)
    changed = tuple(modern(argument) for argument in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return hint
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return functools.reduce(operator.or_, changed)
    return hint.copy_with(changed) if hasattr(hint, "copy_with") else origin[changed]


@functools.cache
def rebuilt(kind: Any) -> Any:
    """Return a `TypedDict` of `typing_extensions` with the same fields."""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
            (hint,) = typing.get_args(hint)
        required = name in kind.__required_keys__
        wrapper: Any = typing_extensions.Required if required else typing_extensions.NotRequired
        fields[name] = wrapper[modern(hint)]
    make: Any = typing_extensions.TypedDict
    made = make(kind.__name__, fields)
    made.__doc__ = kind.__doc__
    return made
