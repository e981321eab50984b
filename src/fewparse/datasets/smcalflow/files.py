"""Read the turns of SMCalFlow: dialogues as they were published, or single turns as JSON lines.

A published line is a dialogue, of which these fields are read:

    {"dialogue_id": "...", "turns": [{"turn_index": 0, "skip": false, "lispress": "(...)",
      "user_utterance": {"original_text": "..."}, "agent_utterance": {"original_text": "..."}}]}

A line of the other form is a turn: `dialogue_id`, `turn_index`, `context`, `utterance` and `program`. The context
of a turn is what the agent said at the turn before, be that one to be skipped or not.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fewparse.datasets.published import WHOLE
from fewparse.errors import DataError, GrammarError
from fewparse.example import Example, is_unicode
from fewparse.files import parse_json_line
from fewparse.grammar.induction.sexpr import compact, read_program

TURN_ID = re.compile(r"[^\s,]+,[0-9]+")
KINDS = {str: "text", int: "whole number", bool: "true or false", list: "list"}
Kind = TypeVar("Kind", str, int, bool, list[Any])


@dataclass(frozen=True)
class Turn:
    """What a user said at one turn of a dialogue and what was meant, with the line it was read from."""

    dialogue: str
    index: int
    example: Example
    line: int

    @property
    def id(self) -> str:
        """The turn as lists of turns name it."""
        return f"{self.dialogue},{self.index}"


@dataclass(frozen=True)
class Line:
    """The object on a line of a file; what is asked for and not there is told with its place."""

    fields: dict[str, Any]
    number: int
    path: Path

    def get(self, kind: type[Kind], *way: str | int) -> Kind:
        """The value at the end of a way of keys and places in lists."""
        value: Any = self.fields
        try:
            for step in way:
                value = value[step]
        except (KeyError, TypeError):
            value = None
        if type(value) is not kind or (isinstance(value, str) and not is_unicode(value)):
            name = ".".join(map(str, way))
            raise DataError(f"`{name}` is missing or no {KINDS[kind]}", self.path, self.number, hint=WHOLE)
        return value

    def turn(self, dialogue: str, index: int, utterance: str, program: str, context: str) -> Turn:
        """A turn of this line, its program in the form in which programs are compared."""
        try:
            written = compact(read_program(program, f"{dialogue},{index}"))
        except GrammarError as error:
            message = f"the program of a turn is no S-expression: {error.message}"
            raise DataError(message, self.path, self.number, hint=WHOLE) from None
        return Turn(dialogue, index, Example(utterance, written, context=context), self.number)


def read_dialogues(source: str, path: Path) -> Iterator[Turn]:
    """The turns of published dialogues, but for those that are to be skipped."""
    for line in read_lines(source, path):
        dialogue, context = line.get(str, "dialogue_id"), ""
        for i, _ in enumerate(line.get(list, "turns")):
            if not line.get(bool, "turns", i, "skip"):
                yield line.turn(
                    dialogue,
                    line.get(int, "turns", i, "turn_index"),
                    line.get(str, "turns", i, "user_utterance", "original_text"),
                    line.get(str, "turns", i, "lispress"),
                    context,
                )
            context = line.get(str, "turns", i, "agent_utterance", "original_text")


def read_turns(source: str, path: Path) -> Iterator[Turn]:
    """The turns of a file that has one a line."""
    for line in read_lines(source, path):
        utterance, program, context = (line.get(str, key) for key in ("utterance", "program", "context"))
        yield line.turn(line.get(str, "dialogue_id"), line.get(int, "turn_index"), utterance, program, context)


def read_lines(source: str, path: Path) -> Iterator[Line]:
    """The lines of a file that are not blank."""
    for number, line in enumerate(source.split("\n"), 1):
        if line.strip():
            yield Line(parse_json_line(line, number, path, DataError, WHOLE), number, path)


def distinct(turns: Iterable[Turn], path: Path) -> dict[str, Turn]:
    """The turns of a file by their names, in their order; none is there twice."""
    found: dict[str, Turn] = {}
    for turn in turns:
        other = found.setdefault(turn.id, turn)
        if other is not turn:
            raise DataError(f"turn {turn.id} is also in line {other.line}", path, turn.line, hint=WHOLE)
    return found


def select(listed: str, path: Path, turns: Mapping[str, Turn], where: Path) -> tuple[Turn, ...]:
    """The turns that a list names, one a line, in the order of the list."""
    chosen: dict[str, Turn] = {}
    for number, line in enumerate(listed.split("\n"), 1):
        name = line.strip()
        if not name:
            continue
        if TURN_ID.fullmatch(name) is None:
            raise DataError("expected a turn as `dialogue,number`", path, number, 1, listed, WHOLE)
        if name in chosen:
            raise DataError(f"turn {name} is listed twice", path, number, hint=WHOLE)
        if name not in turns:
            hint = "Are both files whole and unchanged? Copy or fetch them again."
            raise DataError(f"turn {name} is not among the turns to be used of {where}", path, number, hint=hint)
        chosen[name] = turns[name]
    if not chosen:
        raise DataError("there is no turn in this list", path, hint=WHOLE)
    return tuple(chosen.values())


def as_list(turns: Iterable[Turn]) -> str:
    """The list that names these turns."""
    return "".join(f"{turn.id}\n" for turn in turns)
