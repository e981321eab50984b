"""The known values of columns: their own, or those of a column that contains all of them.

A column whose values are all values of another column (`river.traverse` of `state.state_name`), or that refers to
it by a foreign key, is about the same things: all values of the other column may be asked for.
"""

from functools import lru_cache

from fewparse.domains.sql.database import Database
from fewparse.domains.sql.types import known_values

MIN_CONTAINED = 5
"""Fewer values may be contained in others by chance."""
MAX_CONTAINING = 1_000
"""Larger sets of values are not used for other columns."""

ValueSets = dict[tuple[str, str], tuple[str, ...]]
"""The known values by table and column; columns without known values are missing."""


@lru_cache(maxsize=8)
def value_sets(database: Database) -> ValueSets:
    """Return the known values of all columns of a database."""
    own = {
        (table.name, column.name): values
        for table in database.tables
        for column in table.columns
        if (values := known_values(column))
    }
    distinct = {values: frozenset(values) for values in own.values()}
    largest_first = sorted(distinct, key=lambda values: (-len(values), values))
    containing: dict[str, list[tuple[str, ...]]] = {}
    for values in largest_first:
        if len(values) <= MAX_CONTAINING:
            for value in values:
                containing.setdefault(value, []).append(values)
    found = {values: larger(values, distinct, containing) for values in distinct}
    sets = {key: found[values] for key, values in own.items()}
    for key in database.foreign_keys:
        for column, other in zip(key.columns, key.other_columns, strict=True):
            if (key.table, column) in own and (key.other_table, other) in own:
                sets[key.table, column] = sets[key.other_table, other]
    return sets


def larger(
    values: tuple[str, ...],
    sets: dict[tuple[str, ...], frozenset[str]],
    containing: dict[str, list[tuple[str, ...]]],
) -> tuple[str, ...]:
    """Return the largest set of values that contains all of some values."""
    if len(values) < MIN_CONTAINED:
        return values
    candidates = min((containing.get(value, []) for value in values), key=len)
    return next((other for other in candidates if sets[other] >= sets[values]), values)
