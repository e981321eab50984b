"""The accepted values of BFCL: for each argument of a call a list of values, one of which must be given.

The empty text in a list means that the argument may be left out. Members of objects have lists of their own.
Values are compared as BFCL does: texts without case, spaces and some punctuation.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

LEFT_OUT = ""
IGNORED = re.compile(r"[ ,./\-_*^]")

AcceptedArguments = Mapping[str, list[Any]]
"""The accepted values of each argument of a call."""
AcceptedCall = Mapping[str, AcceptedArguments]
"""The name of a function with the accepted values of its arguments."""


def are_accepted(arguments: Mapping[str, Any], accepted: AcceptedArguments) -> bool:
    """Return whether all arguments have accepted values, and none is missing."""
    if not arguments.keys() <= accepted.keys():
        return False
    given = (any(matches(value, each) for each in accepted[key]) for key, value in arguments.items())
    missing = accepted.keys() - arguments.keys()
    return all(given) and all(LEFT_OUT in accepted[key] for key in missing)


def matches(value: Any, accepted: Any) -> bool:
    """Return whether a value equals an accepted one."""
    if isinstance(value, str) and isinstance(accepted, str):
        return comparable(value) == comparable(accepted)
    if isinstance(value, list) and isinstance(accepted, list):
        return len(value) == len(accepted) and all(map(matches, value, accepted))
    if isinstance(value, dict) and isinstance(accepted, dict):
        return are_accepted(value, accepted)
    if isinstance(value, bool) or isinstance(accepted, bool):
        return value is accepted
    return bool(value == accepted)


def comparable(text: str) -> str:
    """Return a text without case, spaces and some punctuation."""
    return IGNORED.sub("", text).lower().replace("'", '"')


def first_accepted(accepted: AcceptedArguments, required: Collection[str] = ()) -> dict[str, Any]:
    """Return the first accepted value of each argument, without those that may be left out unless required."""
    return {
        key: first_value([value for value in values if value != LEFT_OUT] or values)
        for key, values in accepted.items()
        if key in required or LEFT_OUT not in values
    }


def first_value(values: list[Any]) -> Any:
    """Return the first of the accepted values."""
    return plain_value(values[0])


def plain_value(accepted: Any) -> Any:
    """Return an accepted value with the first accepted value of each member of its objects."""
    if isinstance(accepted, dict):
        return {key: first_value(each) for key, each in accepted.items() if each and each[0] != LEFT_OUT}
    return [plain_value(each) for each in accepted] if isinstance(accepted, list) else accepted
