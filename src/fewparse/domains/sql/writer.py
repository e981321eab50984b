"""Write queries as canonical SQL, the text that the grammar derives; what it does not derive is an error."""

from dataclasses import replace
from typing import NoReturn

from fewparse.domains.sql.columns import item_name
from fewparse.domains.sql.conditions import ConditionWriter
from fewparse.domains.sql.database import Database
from fewparse.domains.sql.identifiers import identifier
from fewparse.domains.sql.names import Text
from fewparse.domains.sql.query import (
    Aggregate,
    ColumnOf,
    Combination,
    Expression,
    Level,
    Query,
    Select,
    SortKey,
    Source,
    Star,
    SubQuery,
    Value,
    derived_query,
    direction,
    has_aggregate,
    limit_text,
    patterns_of,
)
from fewparse.domains.sql.scopes import Member, Scope, members_of, scopes_of
from fewparse.domains.sql.types import KEY_KINDS
from fewparse.domains.sql.value_sets import value_sets
from fewparse.domains.sql.values import ExpressionWriter

KEY_PATTERNS = {"g", "gg", "ggg", "ag", "aag", "agg", "gag"}
"""The orders of columns (g) and aggregates (a) in the select list of a query with groups."""
PATTERNS_WITH_OTHERS = {"g", "gg"}
"""Those in which GROUP BY may have further columns."""
PATTERNS_SORTED_BY_POSITION = {"ag", "gg"}


class Writer:
    """Writes the queries of a database."""

    def __init__(self, database: Database, text: Text) -> None:
        self._scopes = scopes_of(database)
        self._item_name = item_name(database)
        self._text = text
        self._levels: list[Level] = []
        self._values = ExpressionWriter(self.column, value_sets(database), self.fail)
        self._conditions = ConditionWriter(self._values, self, self.fail, text)

    def fail(self, what: str, hint: str | None = None) -> NoReturn:
        """Raise `SqlError` for a query that the grammar does not derive."""
        self._text.fail(what, None, hint or "docs/sql.md lists what SQL domains can express.")

    def statement(self, query: Query) -> str:
        """Return a whole statement."""
        if isinstance(query, Combination):
            return self.combination(query) + self._combined_order(query)
        derived = derived_query(query)
        return self._derived(query, derived) if derived is not None else self._select(query)

    def column(self, column: ColumnOf) -> str:
        """Return a column as it is written in the query that is being written."""
        current = self._levels[-1]
        if column.source in current.names and not current.qualified:
            return identifier(column.name)
        for level in reversed(self._levels):
            if column.source in level.names:
                return f"{level.names[column.source]}.{identifier(column.name)}"
        self.fail(f"the column `{column.name}` of a query further out is not supported")

    def _enter(self, select: Select, inner_of: Source | None = None) -> None:
        """Name the sources of a query; `inner_of` is the source of the outer query to which it is related."""
        tables = [source.table for source in select.sources]
        if not self._scopes.has(tables):
            self.fail(f"the join of {', '.join(tables)} is not in the grammar")
        scope = self._scope(select)
        if len(tables) > 1 and tuple(tables) not in set(self._scopes.sequences(scope)):
            self.fail(f"the order of the joins of {', '.join(tables)} is not in the grammar")
        members = members_of(tables)
        if inner_of is not None and inner_of.table == tables[0]:
            members = (Member(tables[0], 2),)
        names = {s: identifier(self._scopes.alias(m)) for s, m in zip(select.sources, members, strict=True)}
        qualified = len(tables) > 1 or inner_of is not None
        self._levels.append(Level(names, qualified, len(tables) == 1))

    def _from(self, select: Select) -> str:
        parts: list[str] = []
        for join in select.joins:
            name, table = self._levels[-1].names[join.source], identifier(join.source.table)
            written = table if name == table else f"{table} AS {name}"
            if not parts:
                parts.append(f" FROM {written}")
                continue
            kind = " LEFT JOIN " if join.outer else " JOIN "
            parts.append(f"{kind}{written} ON {' AND '.join(map(self._conditions.link, join.conditions))}")
        return "".join(parts)

    def _select(self, select: Select, alias: str = "", limit_one: bool = False) -> str:
        """Return a SELECT statement; `alias` names its only item."""
        if select.outer:
            self.fail("a sub-query that refers to the query around it is not supported here")
        with self._text.about(select.sources[0]):
            self._enter(select)
            arithmetic = self._values.arithmetic
            self._values.arithmetic = self._scopes.has_arithmetic(self._scope(select))
            head = "SELECT DISTINCT " if select.distinct else "SELECT "
            items = ", ".join(self._item_text(item, select) for item in select.items) + alias
            text = head + items + self._from(select) + self._conditions.where(select)
            text += self._group_by(select) + self._conditions.having(select) + self._order_by(select)
            self._values.arithmetic = arithmetic
            self._levels.pop()
        return text + (limit_text(1, select.offset) if limit_one else limit_text(select.limit, select.offset))

    def _scope(self, select: Select) -> Scope:
        return Scope(tuple(sorted((source.table for source in select.sources), key=self._scopes.order)))

    def _item_text(self, item: Expression, select: Select) -> str:
        with self._text.about(item):
            return self._item(item, select)

    def _item(self, item: Expression, select: Select) -> str:
        if isinstance(item, Star):
            if select.distinct or select.groups:
                self.fail("* with DISTINCT or GROUP BY is not supported")
            return "*" if item.source is None else f"{self._levels[-1].names[item.source]}.*"
        if isinstance(item, SubQuery):
            if select.groups or select.distinct or not self._levels[-1].single:
                self.fail("a sub-query in this select list is not supported")
            return self.related(item.query)
        if (select.distinct or select.groups) and isinstance(item, ColumnOf):
            self._check_key(item)
        if select.distinct and select.groups:
            self.fail("DISTINCT with GROUP BY is not supported")
        return self._values.text(item)

    def _check_key(self, column: ColumnOf) -> None:
        if self._values.kind(column) not in KEY_KINDS:
            self.fail(f"the column `{column.name}` cannot be grouped or made distinct")

    def _group_by(self, select: Select) -> str:
        if not select.groups:
            return ""
        pattern, base = patterns_of(select)
        positions = [str(at) for at, item in enumerate(select.items, 1) if item in select.groups]
        others = [group for group in select.groups if group not in select.items]
        if "g" in pattern:
            if base not in KEY_PATTERNS or (len(base) == 3 and not self._scopes.is_full(self._scope(select))):
                self.fail("this order of columns and aggregates in the select list is not supported")
            if (base == "gag" and pattern != base) or pattern == "ggg":
                self.fail("this order of columns and aggregates in the select list is not supported")
            plain = pattern == base and not (base == "g" and (select.having or select.order or select.limit))
            if others and (base not in PATTERNS_WITH_OTHERS or plain):
                self.fail("GROUP BY with more columns than the select list is not supported here")
        for group in others:
            assert isinstance(group, ColumnOf)
            self._check_key(group)
        return " GROUP BY " + ", ".join(positions + [self._values.text(group) for group in others])

    def _order_by(self, select: Select) -> str:
        if not select.order:
            return ""
        if select.distinct:
            return self._positions(select.order, select.items, 2)
        if not select.groups:
            if any(isinstance(key.value, SubQuery | Star) or has_aggregate(key.value) for key in select.order):
                self.fail("this ORDER BY is not supported")
            for key in select.order:
                if isinstance(key.value, ColumnOf):
                    self._check_key(key.value)
            return " ORDER BY " + ", ".join(self._values.text(key.value) + direction(key) for key in select.order)
        return self._grouped_order(select)

    def _grouped_order(self, select: Select) -> str:
        keys = []
        for key in select.order:
            if has_aggregate(key.value):
                keys.append(self._values.text(key.value) + direction(key))
            elif key.value == select.items[0]:
                keys.append("1" + direction(key))
            else:
                if (
                    patterns_of(select)[1] not in PATTERNS_SORTED_BY_POSITION
                    or select.having
                    or len(select.items) < 2
                ):
                    self.fail("ORDER BY this column is not supported with GROUP BY")
                return self._positions(select.order, select.items, 2)
        return " ORDER BY " + ", ".join(keys)

    def _positions(self, order: list[SortKey], items: list[Expression], highest: int) -> str:
        """Return ORDER BY with positions of the select list."""
        keys = []
        for key in order:
            if key.value not in items[:highest]:
                self.fail("ORDER BY takes one of the first two columns of the select list here")
            keys.append((items.index(key.value) + 1, direction(key)))
        first = dict(reversed(keys))  # a repeated key has no effect
        return " ORDER BY " + ", ".join(
            f"{position}{first[position]}" for position in dict.fromkeys(p for p, _ in keys)
        )

    def scalar(self, query: Query) -> str:
        """Return a sub-query of one value, in brackets."""
        if isinstance(query, Combination):
            self.fail("a set operation as one value is not supported")
        derived = derived_query(query)
        if derived is not None:
            return f"({self._summary(query, derived)})"
        self._check_one_item(query)
        if query.is_aggregated:
            return f"({self._select(query)})"
        if query.groups and query.offset:
            self.fail("OFFSET in this sub-query is not supported")
        if query.offset and not query.order:
            self.fail("OFFSET without ORDER BY is not supported here")
        if isinstance(query.items[0], ColumnOf) and query.groups and set(query.groups) != set(query.items):
            self.fail("GROUP BY with other columns in a sub-query is not supported")
        return f"({self._select(replace(query, distinct=False, limit=None), limit_one=True)})"

    def listed(self, query: Query) -> str:
        """Return a sub-query of many values, without brackets."""
        if isinstance(query, Combination):
            if query.order or query.limit:
                self.fail("ORDER BY and LIMIT after a set operation are not supported in a sub-query")
            self._check_one_item(query.operands[0])
            return self.combination(query)
        derived = derived_query(query)
        if derived is not None:
            return self._summary(query, derived)
        self._check_one_item(query)
        if query.limit is None:
            query = replace(query, order=[])
        elif query.distinct:
            self.fail("DISTINCT with LIMIT in a sub-query is not supported")
        if isinstance(query.items[0], ColumnOf) and query.groups and set(query.groups) != set(query.items):
            self.fail("GROUP BY with other columns in a sub-query is not supported")
        return self._select(query)

    def _check_one_item(self, query: Select) -> None:
        if len(query.items) != 1 or isinstance(query.items[0], Star | SubQuery):
            self.fail("a sub-query must have one column")

    def related(self, query: Query, exists: bool = False) -> str:
        """Return a sub-query that refers to the query around it, in brackets."""
        if not isinstance(query, Select) or len(query.joins) != 1 or query.sources[0].query is not None:
            self.fail("a sub-query that refers to the query around it must be over one table")
        if query.groups or query.limit or query.order or query.having or query.distinct:
            self.fail(
                "GROUP BY, ORDER BY, LIMIT and DISTINCT are not supported in a sub-query that refers to others"
            )
        if not query.outer:
            self.fail("a sub-query here must refer to the query around it")
        sources = {column.source for column in query.outer}
        outer = next(iter(sources))
        if len(sources) > 1 or outer not in self._levels[-1].names:
            self.fail("a sub-query may refer to one table of the query directly around it only")
        if self._levels[-1].names[outer] != identifier(outer.table):
            self.fail("a sub-query may refer to the first occurrence of a table only")
        if exists:
            head = "SELECT 1"
        else:
            if not self._levels[-1].single or len(query.items) != 1:
                self.fail("a sub-query that refers to the query around it must have one value, over one table")
            head = ""
        self._enter(query, outer)
        try:
            if not exists:
                item = query.items[0]
                if not isinstance(item, Aggregate) or not (
                    item.argument is None or isinstance(item.argument, ColumnOf)
                ):
                    self.fail("a sub-query that refers to the query around it must be an aggregate of a column")
                head = f"SELECT {self._values.text(item)}"
            return f"({head}{self._from(query)}{self._conditions.related(query, self._scopes)})"
        finally:
            self._levels.pop()

    def combination(self, query: Combination) -> str:
        """Return a set operation without its order."""
        width = len(query.operands[0].items)
        if width > 2 or (width == 2 and len(query.operands) > 2):
            self.fail("a set operation of more than two columns is not supported")
        kinds = []
        for operand in query.operands:
            if operand.groups or operand.order or operand.limit or derived_query(operand) is not None:
                self.fail("GROUP BY, ORDER BY and LIMIT within a set operation are not supported")
            types = [self._values.type(item) for item in operand.items if not isinstance(item, Star | SubQuery)]
            if None in types or len(types) != width:
                self.fail("columns of this type are not supported in a set operation")
            if width == 2 and (operand.is_aggregated or not set(types) <= {"num", "text"}):
                self.fail("set operations of two columns are of numbers and text only")
            kinds.append(tuple(types))
        if len(set(kinds)) > 1:
            self.fail("the queries of a set operation must have columns of the same types")
        return f" {query.operator} ".join(self._select(operand) for operand in query.operands)

    def _combined_order(self, query: Combination) -> str:
        positions: list[Expression] = [Value("int", str(at)) for at, _ in enumerate(query.operands[0].items, 1)]
        text = self._positions(query.order, positions, len(positions)) if query.order else ""
        return text + limit_text(query.limit, query.offset)

    def _derived(self, query: Select, derived: Query) -> str:
        """Return a query over a derived table."""
        if query.order or query.having or query.distinct or query.limit:
            self.fail("ORDER BY, HAVING, DISTINCT and LIMIT over a derived table are not supported")
        if query.groups:
            first, *rest = query.items
            if query.groups != [first] or rest != [Aggregate("COUNT")] or not isinstance(first, ColumnOf):
                self.fail("GROUP BY over a derived table takes one column, with COUNT(*)")
            inner = self._numbers(derived, first)
            return f"SELECT {self._item_name}, COUNT(*) FROM ({inner}) AS derived GROUP BY 1"
        if query.items == [Aggregate("COUNT")]:
            return f"SELECT COUNT(*) FROM ({self.statement(derived)}) AS derived"
        return self._summary(query, derived)

    def _summary(self, query: Select, derived: Query) -> str:
        """Return an aggregate over the only column of a derived table."""
        item = query.items[0]
        if len(query.items) != 1 or query.groups or not isinstance(item, Aggregate) or item.distinct:
            self.fail("a query over a derived table must be one aggregate of one column")
        if item.function == "COUNT" or not isinstance(item.argument, ColumnOf):
            self.fail("COUNT over a derived table is not supported here")
        return (
            f"SELECT {item.function}({self._item_name}) FROM ({self._numbers(derived, item.argument)}) AS derived"
        )

    def _numbers(self, derived: Query, column: ColumnOf) -> str:
        """Return a derived table with a column of numbers."""
        if isinstance(derived, Combination):
            self.fail("an aggregate over a set operation is not supported")
        if derived_query(derived) is not None:
            self.fail("a derived table within a derived table is not supported here")
        item = derived.items[derived.names.index(column.name)]
        if derived.distinct and len(derived.items) > 1:
            self.fail("an aggregate over DISTINCT of several columns is not supported")
        if self._values.type(item) != "num":
            self.fail("an aggregate over a derived table must be of numbers")
        if derived.groups and not has_aggregate(item):
            self.fail("an aggregate over the groups of a derived table is not supported")
        if derived.limit is None:
            derived = replace(derived, order=[])
        elif derived.distinct:
            self.fail("DISTINCT with LIMIT in a derived table is not supported")
        return self._select(replace(derived, items=[item]), f" AS {self._item_name}")
