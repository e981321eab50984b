r"""Judge calls by accepted values: a file lists, for each gold program, which values its arguments may have.

A line has the gold program, in either notation, and the name of its function with the accepted values of each
argument, as in the Berkeley Function-Calling Leaderboard; the empty text means that an argument may be left out:

    {"program": "get_weather(city=\"Paris\")", "accepted": {"get_weather": {"city": ["Paris"], "days": ["", 1]}}}
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from fewparse.datasets.function_calls.accepted import AcceptedCall, are_accepted
from fewparse.domains.calls.program import Call, read_program
from fewparse.errors import DomainError, InvalidProgram
from fewparse.files import parse_json_line, read_text


class AcceptedCalls:
    """Decides whether a program is one of the accepted calls for a gold program."""

    def __init__(self, path: Path) -> None:
        self._accepted: dict[str, list[AcceptedCall]] = defaultdict(list)
        for number, line in enumerate(read_text(path, DomainError).split("\n"), 1):
            if line.strip():
                program, accepted = accepted_call(line, number, path)
                self._accepted[program].append(accepted)

    def is_correct(self, program: str, gold: str) -> bool:
        """Return whether a program is accepted; without accepted values, it must be the same call as the gold."""
        found, expected = calls_of(program), calls_of(gold)
        if found is None or expected is None:
            return False
        accepted = self._accepted.get(key_of(expected))
        if accepted is None:
            return key_of(found) == key_of(expected)
        return len(found) == 1 and any(is_accepted(found[0], each) for each in accepted)


def is_accepted(call: Call, accepted: AcceptedCall) -> bool:
    """Return whether a call has the name of the function and accepted values for its arguments."""
    return call.name in accepted and are_accepted(call.arguments, accepted[call.name])


def accepted_call(line: str, number: int, path: Path) -> tuple[str, AcceptedCall]:
    """Return the key of the gold program of a line, and what is accepted; raise `DomainError`."""
    match parse_json_line(line, number, path, DomainError):
        case {"program": str(program), "accepted": dict(accepted)} if is_table(accepted):
            if calls := calls_of(program):
                return key_of(calls), accepted
    raise DomainError("not a program with the accepted values of its arguments", path, number)


def is_table(accepted: dict[str, Any]) -> bool:
    """Return whether a value has lists of accepted values."""
    arguments = accepted.values()
    return all(
        isinstance(each, dict) and all(isinstance(values, list) for values in each.values()) for each in arguments
    )


def calls_of(program: str) -> list[Call] | None:
    """Return the calls of a program; None if it is not one."""
    try:
        return read_program(program)[0]
    except InvalidProgram:
        return None


def key_of(calls: list[Call]) -> str:
    """Return the same text for the same calls, whatever the order of their arguments."""
    return json.dumps([call.as_dict() for call in calls], sort_keys=True)
