"""Check what callers pass from Python: a value of a wrong type is an error that says what was expected."""

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from fewparse.errors import UsageError, listed

MAX_SHOWN, MAX_LISTED = 40, 3
TYPE_NAMES: dict[type, str] = {str: "a text", Path: "a path", bool: "True or False", int: "a whole number"}


def refuse(what: str, value: object, expected: str, hint: str | None = None) -> NoReturn:
    """Raise the `UsageError` for a value of a wrong type."""
    raise UsageError(f"{what} is {described(value)}; expected {expected}", hint)


def described(value: object) -> str:
    """Return a value and its type for a message."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None:
        return "None"
    try:
        shown = repr(value)
    except Exception:  # of a class of the caller
        shown = ""
    name = type(value).__name__
    return f"{shown} ({name})" if 0 < len(shown) <= MAX_SHOWN and not shown.startswith("<") else f"a {name}"


def check_type(what: str, value: object, types: type | tuple[type, ...], expected: str, hint: str = "") -> None:
    """Raise `UsageError` for a value that is of none of these types; True and False are not numbers."""
    is_number = isinstance(value, bool) and bool not in (types if isinstance(types, tuple) else (types,))
    if is_number or not isinstance(value, types):
        refuse(what, value, expected, hint or None)


def accepted_types(options: type) -> dict[str, tuple[type, ...]]:
    """Return the types of the keys of a `TypedDict`, besides None; a path may be given as text."""
    found = {}
    for name, hint in get_type_hints(options).items():
        kinds = [type(kind.__args__[0]) if get_origin(kind) is Literal else kind for kind in get_args(hint)]
        found[name] = tuple(kind for kind in TYPE_NAMES if kind in kinds or (kind is str and Path in kinds))
    return found


def check_values(values: Mapping[str, Any], types: Mapping[str, tuple[type, ...]]) -> None:
    """Raise `UsageError` for a value that is neither None nor of the types of its name."""
    for name, value in values.items():
        if value is not None and name in types:
            check_type(f"`{name}`", value, types[name], " or ".join(TYPE_NAMES[kind] for kind in types[name]))


def check_protocol(what: str, value: Any, protocol: type, expected: str, guide: str) -> None:
    """Raise `UsageError` for an object that lacks members of a protocol; `guide` is the title of its page."""
    hint = f'See "{guide}" in the documentation.'
    if isinstance(value, type):
        refuse(what, value, f"{expected}: an instance, not its class", f"Pass {value.__name__}(...). {hint}")
    lacking = [name for name in members(protocol) if not has_member(value, name, protocol)]
    if lacking:
        names = listed([f"`{name}`" for name in lacking], MAX_LISTED)
        refuse(what, value, f"{expected}; it lacks {names}", hint)


def members(protocol: type) -> Iterator[str]:
    """Yield the names of the members of a protocol and of its bases."""
    for base in reversed(protocol.__mro__):
        if getattr(base, "_is_protocol", False):
            yield from (name for name in vars(base) if not name.startswith("_"))


def has_member(value: object, name: str, protocol: type) -> bool:
    """Return whether an object has a member of a protocol, one that can be called if it is a method."""
    is_method = inspect.isfunction(inspect.getattr_static(protocol, name))
    return callable(getattr(value, name, None)) if is_method else hasattr(value, name)
