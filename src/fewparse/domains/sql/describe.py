"""Describe a database for a prompt: a line for each table."""

from fewparse.domains.sql.database import Column, Database, Table
from fewparse.text import one_line

MAX_COLUMNS = 60
MAX_VALUES = 8
MAX_COMMENT = 100


def describe(database: Database) -> str:
    """Return a line for each table: its columns with their types, keys and, if they are very few, their values."""
    return "\n".join(describe_table(table, database) for table in database.tables)


def describe_table(table: Table, database: Database) -> str:
    """Return the line of a table."""
    references = {
        key.columns[0]: f"{key.other_table}.{key.other_columns[0]}"
        for key in database.foreign_keys
        if key.table == table.name and len(key.columns) == 1
    }
    shown = [describe_column(column, references.get(column.name)) for column in table.columns[:MAX_COLUMNS]]
    if len(table.columns) > MAX_COLUMNS:
        shown.append(f"and {len(table.columns) - MAX_COLUMNS} more")
    comment = f" -- {one_line(table.comment, MAX_COMMENT)}" if table.comment.strip() else ""
    return f"{table.name}({', '.join(shown)}){comment}"


def describe_column(column: Column, reference: str | None) -> str:
    """Return a column: its name, its type unless it is text, the column that it refers to, and its values."""
    text = column.name if column.type == "text" else f"{column.name} {column.type}"
    if reference is not None:
        text += f" = {reference}"
    if column.values is not None and len(column.values) <= MAX_VALUES:
        text += f" [{' | '.join(map(str, column.values))}]"
    return f"{text} /* {one_line(column.comment, MAX_COMMENT)} */" if column.comment.strip() else text
