"""Programs of function calls: read and write both notations.

call   get_weather(city="Paris", days=3); several calls are a list, [get_weather(city="Paris"), stop()]
json   {"name":"get_weather","arguments":{"city":"Paris","days":3}}; several calls are a JSON array

Arguments are written in the order of their declaration. In the notation `call`, a name that is not a plain word is
quoted: "get weather"(city="Paris").
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from fewparse.errors import InvalidProgram
from fewparse.files import value_reason
from fewparse.json_schema.document import NUMBERS

Notation = Literal["call", "json"]
PLAIN_NAME = re.compile(r"[^\W\d][\w.$\-\[\]]*")
SPACES = re.compile(r"\s*")


class Call(NamedTuple):
    """A call of a function."""

    name: str
    arguments: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the call as a JSON object."""
        return {"name": self.name, "arguments": self.arguments}


def execute(program: str) -> Any:
    """Return a program as a JSON value: a call as an object, several calls as a list of objects."""
    calls, several = read_program(program)
    values = [call.as_dict() for call in calls]
    return values if several else values[0]


def read_program(program: str) -> tuple[list[Call], bool]:
    """Return the calls of a program in either notation, and whether they are a list; raise `InvalidProgram`."""
    return ProgramReader(program).read()


class ProgramReader:
    """Reads one program; spaces between its parts do not matter, and the last one of equal keys counts."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._decoder = json.JSONDecoder(**NUMBERS)

    def read(self) -> tuple[list[Call], bool]:
        """Return the calls, and whether they are in a list."""
        several = self._skip("[")
        read_call = self._json_call if self._peek() == "{" else self._call
        calls = [read_call()]
        while several and self._skip(","):
            calls.append(read_call())
        if several:
            self._expect("]")
        if self._peek():
            raise self._mistake("continues after its end")
        return calls, several

    def _json_call(self) -> Call:
        start = self._at
        match self._value():
            case {"name": str(name), "arguments": dict(arguments), **others} if not others:
                return Call(name, arguments)
        raise self._mistake('has a call that is not {"name": ..., "arguments": {...}}', start)

    def _call(self) -> Call:
        name = self._name("(")
        self._expect("(")
        arguments: dict[str, Any] = {}
        if not self._skip(")"):
            while True:
                self._peek()
                start = self._at
                key = self._name("=")
                if key in arguments:
                    raise self._mistake(f"has the argument {key!r} twice", start)
                self._expect("=")
                arguments[key] = self._value()
                if not self._skip(","):
                    break
            self._expect(")")
        return Call(name, arguments)

    def _name(self, end: str) -> str:
        if self._peek() == '"':
            name = self._value()
            assert isinstance(name, str)
            return name
        found = PLAIN_NAME.match(self._text, self._at)
        if found is None:
            raise self._mistake(f"has no name before `{end}`")
        self._at = found.end()
        return found[0]

    def _value(self) -> Any:
        self._peek()
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            raise self._mistake("has a value that is not JSON", error.pos) from None
        except RecursionError:
            raise self._mistake("has values that are nested too deeply") from None
        except ValueError as error:
            raise self._mistake(f"has a value that is not JSON: {value_reason(error)}") from None
        return value

    def _peek(self) -> str:
        """Skip spaces and return the next character; empty at the end."""
        found = SPACES.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _skip(self, char: str) -> bool:
        """Skip a character if it is the next one, and return whether it was."""
        if self._peek() != char:
            return False
        self._at += 1
        return True

    def _expect(self, char: str) -> None:
        if not self._skip(char):
            raise self._mistake(f"has no `{char}` here")

    def _mistake(self, message: str, at: int | None = None) -> InvalidProgram:
        return InvalidProgram(message, self._at if at is None else at)


def write_program(calls: Sequence[Call], notation: Notation, several: bool) -> str:
    """Return calls as a program; without `several` there is one call."""
    if notation == "json":
        values = [call.as_dict() for call in calls]
        return written_value(values if several else values[0], compact=True)
    texts = [write_call(call) for call in calls]
    return f"[{', '.join(texts)}]" if several else texts[0]


def write_call(call: Call) -> str:
    """Return a call in the notation `call`."""
    arguments = (f"{written_name(name)}={written_value(value)}" for name, value in call.arguments.items())
    return f"{written_name(call.name)}({', '.join(arguments)})"


def written_name(name: str) -> str:
    """Return a name as it is written in the notation `call`: quoted if it is not a plain word."""
    return name if PLAIN_NAME.fullmatch(name) else written_value(name)


def written_value(value: Any, compact: bool = False) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else (", ", ": "))
