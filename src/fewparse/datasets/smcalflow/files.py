"""Read the turns of SMCalFlow from published dialogues, or from single turns as JSON lines.

A line of the published file is a dialogue, of which these fields are read:

    {"dialogue_id": "...", "turns": [{"turn_index": 0, "skip": false, "lispress": "(...)",
      "user_utterance": {"original_text": "..."}, "agent_utterance": {"original_text": "..."}}]}

A line of the other format is a turn: `dialogue_id`, `turn_index`, `context`, `utterance` and `program`. The
context of a turn is the agent's utterance at the previous turn, whether that turn is skipped or not.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fewparse.datasets.dataset import CHECK_FILE
from fewparse.errors import DataError, GrammarError
from fewparse.example import Example
from fewparse.files import parse_json_line
from fewparse.grammar.induction.sexpr import compact, read_program
from fewparse.text import is_unicode

TURN_ID = re.compile(r"[^\s,]+,[0-9]+")
TYPE_NAMES = {str: "text", int: "a whole number", bool: "true or false", list: "a list"}
FieldType = TypeVar("FieldType", str, int, bool, list[Any])


def turn_id(dialogue: str, index: int) -> str:
    """Return a turn in the form of the lists of turn ids."""
    return f"{dialogue},{index}"


@dataclass(frozen=True)
class Turn:
    """One user turn of a dialogue, with the number of the line it was read from."""

    dialogue: str
    index: int
    example: Example
    line: int

    @property
    def id(self) -> str:
        """The turn in lists of turn ids: `dialogue,index`."""
        return turn_id(self.dialogue, self.index)


@dataclass(frozen=True)
class JsonLine:
    """The JSON object of one line, with typed access to its fields."""

    fields: dict[str, Any]
    number: int
    path: Path

    def get(self, kind: type[FieldType], *keys: str | int) -> FieldType:
        """Return the value at a path of keys and indices; raise `DataError` if there is none of this type."""
        value: Any = self.fields
        try:
            for key in keys:
                value = value[key]
        except (KeyError, TypeError):
            value = None
        if type(value) is not kind or (isinstance(value, str) and not is_unicode(value)):
            name = ".".join(map(str, keys))
            message = f"`{name}` is missing or not {TYPE_NAMES[kind]}"
            raise DataError(message, self.path, self.number, hint=CHECK_FILE)
        return value

    def turn(self, dialogue: str, index: int, utterance: str, program: str, context: str) -> Turn:
        """Return a turn of this line, with its program on one line and single spaces."""
        try:
            one_line = compact(read_program(program, turn_id(dialogue, index)))
        except GrammarError as error:
            message = f"the program of a turn is not an S-expression: {error.message}"
            raise DataError(message, self.path, self.number, hint=CHECK_FILE) from None
        return Turn(dialogue, index, Example(utterance, one_line, context=context), self.number)


def read_dialogues(lines: Iterable[str], path: Path, ids: Collection[str] | None = None) -> Iterator[Turn]:
    """Yield the turns of published dialogues, except those marked as skipped.

    If `ids` are given, only the turns with these ids are yielded. Other dialogues are not checked and no other
    programs are read, which would take minutes in a large file.
    """
    wanted = None if ids is None else {turn.partition(",")[0] for turn in ids}
    for line in parse_lines(lines, path):
        dialogue, context = line.get(str, "dialogue_id"), ""
        if wanted is not None and dialogue not in wanted:
            continue
        for i, _ in enumerate(line.get(list, "turns")):
            if not line.get(bool, "turns", i, "skip"):
                index = line.get(int, "turns", i, "turn_index")
                if ids is None or turn_id(dialogue, index) in ids:
                    utterance = line.get(str, "turns", i, "user_utterance", "original_text")
                    yield line.turn(dialogue, index, utterance, line.get(str, "turns", i, "lispress"), context)
            context = line.get(str, "turns", i, "agent_utterance", "original_text")


def read_turns(lines: Iterable[str], path: Path) -> Iterator[Turn]:
    """Yield the turns of a file with one turn per line."""
    for line in parse_lines(lines, path):
        utterance, program, context = (line.get(str, key) for key in ("utterance", "program", "context"))
        yield line.turn(line.get(str, "dialogue_id"), line.get(int, "turn_index"), utterance, program, context)


def parse_lines(lines: Iterable[str], path: Path) -> Iterator[JsonLine]:
    """Yield the objects of a JSON lines file; blank lines are skipped."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield JsonLine(parse_json_line(line, number, path, DataError, CHECK_FILE), number, path)


def index_turns(turns: Iterable[Turn], path: Path) -> dict[str, Turn]:
    """Return the turns of a file by their ids, in order; raise `DataError` if an id occurs twice."""
    found: dict[str, Turn] = {}
    for turn in turns:
        other = found.setdefault(turn.id, turn)
        if other is not turn:
            raise DataError(f"turn {turn.id} is also in line {other.line}", path, turn.line, hint=CHECK_FILE)
    return found


def read_ids(id_list: str, path: Path) -> dict[str, int]:
    """Return the turn ids of a list, one per line, in order and with the numbers of their lines."""
    ids: dict[str, int] = {}
    for number, line in enumerate(id_list.split("\n"), 1):
        name = line.strip()
        if not name:
            continue
        if TURN_ID.fullmatch(name) is None:
            raise DataError("expected a turn as `dialogue,number`", path, number, 1, id_list, CHECK_FILE)
        if name in ids:
            raise DataError(f"turn {name} is listed twice", path, number, hint=CHECK_FILE)
        ids[name] = number
    if not ids:
        raise DataError("the list has no turns", path, hint=CHECK_FILE)
    return ids


def select(ids: Mapping[str, int], path: Path, turns: Mapping[str, Turn], turns_path: Path) -> tuple[Turn, ...]:
    """Return the turns of a list of ids, in its order.

    `path` and `turns_path` are the files of the list and of the turns, for error messages.
    """
    for name, number in ids.items():
        if name not in turns:
            hint = "Check that both files are complete and unchanged, or copy or download them again."
            raise DataError(f"turn {name} is not among the usable turns of {turns_path}", path, number, hint=hint)
    return tuple(turns[name] for name in ids)


def to_id_list(turns: Iterable[Turn]) -> str:
    """Return the list of the ids of turns, one per line."""
    return "".join(f"{turn.id}\n" for turn in turns)
