"""What the names of a query refer to: tables, columns of the queries around it, or text in double quotes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NoReturn, TypeVar

from sqlglot import exp

from fewparse.domains.sql.database import Database, Table
from fewparse.domains.sql.query import ColumnOf, Expression, Source, Value
from fewparse.errors import MAX_NAME, SqlError, line_and_column, listed

Found = TypeVar("Found")


class Text:
    """The text of a query, for error messages."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._places: dict[object, tuple[object, int]] = {}
        self._current: list[int] = []

    def place(self, value: object, node: exp.Expr) -> None:
        """Remember from which part of the query a value was read."""
        if (at := start_of(node)) is not None:
            self._places.setdefault(place_key(value), (value, at))

    def function_name(self, node: exp.Expr) -> str | None:
        """Return the name of a function as it is written; None if the node is no function with brackets."""
        start, end = node.meta.get("start"), node.meta.get("end")
        if not isinstance(node, exp.Func) or start is None or end is None:
            return None
        return self._sql[start : end + 1].upper()

    @contextmanager
    def about(self, value: object) -> Iterator[None]:
        """Let errors without a node be those of the part of the query from which a value was read."""
        known = self._places.get(place_key(value))
        if known is None:
            yield
            return
        self._current.append(known[1])
        try:
            yield
        finally:
            self._current.pop()

    def fail(self, message: str, node: exp.Expr | None = None, hint: str | None = None) -> NoReturn:
        """Raise `SqlError` for a part of the query, or else for the one that is being processed."""
        current = self._current[-1] if self._current else None
        self.fail_at(message, current if node is None else start_of(node), hint)

    def fail_at(self, message: str, at: int | None, hint: str | None = None) -> NoReturn:
        """Raise `SqlError` for an offset into the query."""
        line, column = (None, None) if at is None else line_and_column(self._sql, at)
        raise SqlError(message, "SQL", line, column, self._sql, hint)


def place_key(value: object) -> object:
    """Return what identifies a value: equal ones are the same, such as those that a rewriting has copied."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def start_of(node: exp.Expr) -> int | None:
    """Return the offset of the first part of a node whose offset is known."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the names that are most similar to an unknown one."""
    names = list(dict.fromkeys(known))
    near = get_close_matches(name[:MAX_NAME].lower(), [n.lower() for n in names], n=3, cutoff=0.5)
    shown = [found for found in names if found.lower() in near]
    return f"Did you mean {' or '.join(shown)}?" if shown else f"Known: {listed(names) or 'none'}."


def lookup(name: str, known: dict[str, Found]) -> tuple[str, Found] | None:
    """Return the entry of a name, exact or, if there is only one, in another case."""
    if name in known:
        return name, known[name]
    others = [key for key in known if key.casefold() == name.casefold()]
    return (others[0], known[others[0]]) if len(others) == 1 else None


@dataclass
class Frame:
    """The names of one query: its sources by alias, and its items by name."""

    sources: dict[str, Source] = field(default_factory=dict)
    items: dict[str, Expression] = field(default_factory=dict)
    outer: list[ColumnOf] = field(default_factory=list)

    def add(self, source: Source) -> None:
        """Add a source; the same alias must not be used twice."""
        self.sources[source.alias] = source


class Names:
    """The names that a part of a query may use: those of its own query, then those of the queries around it."""

    def __init__(self, database: Database, text: Text) -> None:
        self.database = database
        self.text = text
        self.frames: list[Frame] = []

    def table(self, node: exp.Table) -> Table:
        """Return the table that a FROM clause names; raises `SqlError` for an unknown one."""
        found = lookup(node.name, self.database.by_name)
        if found is None:
            hint = nearest(node.name, self.database.by_name)
            self.text.fail(f"there is no table `{node.name}`", node, hint)
        return found[1]

    def source(self, node: exp.Expression, name: str) -> Source:
        """Return the source of a prefix such as `city` in `city.name`."""
        for frame in reversed(self.frames):
            found = lookup(name, frame.sources)
            if found is not None:
                return found[1]
        known = [alias for frame in reversed(self.frames) for alias in frame.sources]
        self.text.fail(f"no table in FROM is called `{name}`", node, nearest(name, known))

    def column(self, node: exp.Column) -> Expression:
        """Return what a column refers to; in SQLite, an unknown name in double quotes is text."""
        name = node.name
        if node.args.get("table"):
            source = self.source(node, node.table)
            found = lookup(name, columns(source))
            if found is None:
                self.text.fail(f"`{node.table}` has no column `{name}`", node, nearest(name, columns(source)))
            return self._outer(ColumnOf(source, found[0]))
        for depth, frame in enumerate(reversed(self.frames)):
            matches = [
                ColumnOf(source, found[0])
                for source in frame.sources.values()
                if (found := lookup(name, columns(source))) is not None
            ]
            if len(matches) > 1:
                hint = f"Write {' or '.join(f'{match.source.alias}.{match.name}' for match in matches)}."
                self.text.fail(f"the column `{name}` is ambiguous", node, hint)
            if matches:
                return self._outer(matches[0])
            item = lookup(name, frame.items) if depth == 0 else None
            if item is not None:
                return item[1]
        if node.this.args.get("quoted") and self.database.dialect == "sqlite":
            return Value("text", name)
        known = [
            column for frame in self.frames for source in frame.sources.values() for column in columns(source)
        ]
        self.text.fail(f"there is no column `{name}`", node, nearest(name, known))

    def _outer(self, column: ColumnOf) -> ColumnOf:
        """Record a column of a query around the current one."""
        frame = self.frames[-1]
        if column.source not in frame.sources.values():
            frame.outer.append(column)
        return column


def columns(source: Source) -> dict[str, object]:
    """Return the names of a source's columns."""
    return dict.fromkeys(source.query.names) if source.query is not None else dict(source.columns)
