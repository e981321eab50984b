"""CSV tables whose cells have positions, so that mistakes can be shown with line and caret."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from fewparse.errors import GrammarError, line_and_column

CELL = re.compile(r'"((?:[^"]++|"")*+)"|((?!")[^,\r\n]*+|)')
CELL_WITH_ESCAPES = re.compile(r'"((?:[^"\\]++|""|\\.)*+)"|((?!")(?:[^,\r\n\\]++|\\.)*+|)', re.DOTALL)
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
ESCAPE_OR_QUOTE = re.compile(r'\\(.)|""', re.DOTALL)
END_OF_CELL = re.compile(r",|\r\n|\n|\r|\Z")


class Cell(NamedTuple):
    """The content of a cell, and its offset in the table's text."""

    text: str
    at: int


@dataclass(frozen=True, eq=False)
class Table:
    """A CSV text. With `templates`, a backslash escapes the next character, and cells keep their outer spaces."""

    path: str
    text: str
    templates: bool = False

    def rows(self) -> Iterator[list[Cell]]:
        """Yield the non-empty rows, without trailing empty cells; raise GrammarError for wrong quotes."""
        at = 1 if self.text.startswith("\ufeff") else 0
        row: list[Cell] = []
        while at < len(self.text):
            cell = (CELL_WITH_ESCAPES if self.templates else CELL).match(self.text, at)
            assert cell is not None, "the pattern also matches an empty cell"
            row.append(Cell(self._decoded(cell), at))
            end = END_OF_CELL.match(self.text, cell.end())
            if end is None:
                self._fail_quoting(cell.end(), closed=cell.end() > at)
            at = end.end()
            if end.group() != "," or at == len(self.text):
                while row and not row[-1].text:
                    row.pop()
                if row:
                    yield row
                row = []

    def _decoded(self, cell: re.Match[str]) -> str:
        bare, quoted = cell[2], cell[1]
        if not self.templates:
            return (bare if quoted is None else quoted.replace('""', '"')).strip()
        return ESCAPE.sub(r"\1", bare) if quoted is None else ESCAPE_OR_QUOTE.sub(lambda m: m[1] or '"', quoted)

    def _fail_quoting(self, at: int, closed: bool) -> NoReturn:
        if self.text[at] == "\\":
            self.fail("a backslash needs a character after it", at)
        problem = "text follows the end of a quoted cell" if closed else "this quote is never closed"
        self.fail(problem, at, 'Inside a quoted cell, a quote is doubled: "".')

    def line(self, at: int) -> int:
        """Return the number of the line at an offset."""
        return line_and_column(self.text, at)[0]

    def fail(self, message: str, at: int, hint: str | None = None) -> NoReturn:
        """Raise GrammarError for a mistake at an offset."""
        raise GrammarError(message, self.path, *line_and_column(self.text, at), self.text, hint)
