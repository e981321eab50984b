"""Types of values in SQL domains: which columns are compared with each other, calculated with, joined."""

from typing import Literal

from fewparse.domains.sql.database import Column

Kind = Literal["int", "dec", "text", "date", "time", "datetime", "bool", "coded", "other"]
"""The kind of a column: `coded` columns are of a type of the database's own, but their values are known."""
Type = Literal["num", "text", "date", "time", "datetime"]
"""The type of an expression that can be compared."""

KINDS: tuple[Kind, ...] = ("int", "dec", "text", "date", "time", "datetime", "bool", "coded", "other")
TYPES: tuple[Type, ...] = ("num", "text", "date", "time", "datetime")
TYPE_OF_KIND: dict[Kind, Type] = {
    "int": "num",
    "dec": "num",
    "text": "text",
    "date": "date",
    "time": "time",
    "datetime": "datetime",
}
KEY_KINDS: frozenset[Kind] = frozenset(KINDS) - {"other"}
"""Columns that can be grouped, sorted and made distinct."""
JOIN_KINDS: tuple[Kind, ...] = ("int", "text", "date", "time", "datetime")
"""Columns that can join tables without a foreign key."""
_KINDS: dict[str, Kind] = {"integer": "int", "number": "dec", "boolean": "bool"}
_PLAIN: dict[str, Kind] = {kind: kind for kind in KINDS}


def kind_of(column: Column) -> Kind:
    """Return the kind of a column."""
    if column.type == "other":
        return "coded" if known_values(column) else "other"
    return _KINDS.get(column.type) or _PLAIN[column.type]


def known_values(column: Column) -> tuple[str, ...]:
    """Return the values of a column of text, or of a type of the database's own, if they are known."""
    if column.type not in ("text", "other") or not column.values:
        return ()
    return tuple(value for value in column.values if isinstance(value, str) and is_writable(value))


def is_writable(text: str) -> bool:
    """Return whether a text can be written as a literal in every database: without control characters."""
    return all(char >= " " and char != "\x7f" and not "\ud800" <= char <= "\udfff" for char in text)
