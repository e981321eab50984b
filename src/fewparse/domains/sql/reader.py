"""Read SQL as people write it into a query, with all names resolved."""

from sqlglot import exp

from fewparse.domains.sql.database import Database
from fewparse.domains.sql.expressions import ExpressionReader
from fewparse.domains.sql.names import Frame, Names, Text, lookup
from fewparse.domains.sql.query import (
    Both,
    ColumnOf,
    Combination,
    Comparison,
    Condition,
    Expression,
    Join,
    Query,
    Select,
    SortKey,
    Source,
    Star,
    Value,
)
from fewparse.domains.sql.syntax import parse

HINT = "docs/sql.md lists what SQL domains can express."
UNSUPPORTED_CLAUSES = {
    "windows": "WINDOW",
    "qualify": "QUALIFY",
    "laterals": "LATERAL",
    "into": "INTO",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "locks": "FOR UPDATE",
}
MAX_NESTING = 40
SET_OPERATIONS = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}


def read_query(sql: str, database: Database) -> tuple[Query, Text]:
    """Return the query of a SELECT statement; raises `SqlError`."""
    text = Text(sql)
    statement = parse(sql, database, text)
    return QueryReader(database, text).query(statement), text


class QueryReader:
    """Reads queries and their sub-queries."""

    def __init__(self, database: Database, text: Text) -> None:
        self._names = Names(database, text)
        self._fail = text.fail
        self._expressions = ExpressionReader(self._names, self.query)
        self._common: list[dict[str, exp.Expression]] = []

    def query(self, node: exp.Expression) -> Query:
        """Return a SELECT statement or set operation."""
        if isinstance(node, exp.Subquery):
            extra = [key for key in ("order", "limit", "offset") if node.args.get(key)]
            if extra:
                self._fail(f"{extra[0].upper()} after a bracket is not supported", node)
            return self.query(node.this)
        if len(self._names.frames) > MAX_NESTING:
            self._fail("the query is nested too deeply", node)
        self._common.append(self._with(node))
        try:
            if isinstance(node, exp.SetOperation):
                return self._combination(node)
            if not isinstance(node, exp.Select):
                self._fail(f"{node.key.upper()} is not supported here", node, HINT)
            return self._select(node)
        finally:
            self._common.pop()

    def _with(self, node: exp.Expression) -> dict[str, exp.Expression]:
        """Return the queries of WITH by name."""
        clause = node.args.get("with_")
        if clause is None:
            return {}
        if clause.args.get("recursive"):
            self._fail("WITH RECURSIVE is not supported", clause, HINT)
        for table in clause.expressions:
            if table.args["alias"].columns:
                self._fail("names of columns after a name in WITH are not supported", table, HINT)
        return {table.alias: table.this for table in clause.expressions}

    def _select(self, node: exp.Select) -> Select:
        for key, name in UNSUPPORTED_CLAUSES.items():
            if node.args.get(key):
                self._fail(f"{name} is not supported", node, HINT)
        if node.args.get("from_") is None:
            self._fail("a query without FROM is not supported", node, HINT)
        if node.args.get("distinct") and node.args["distinct"].args.get("on"):
            self._fail("DISTINCT ON is not supported", node, HINT)
        frame = Frame()
        self._names.frames.append(frame)
        try:
            joins, where = self._from(node, frame)
            if node.args.get("where"):
                where += conjuncts(self._expressions.condition(node.args["where"].this))
            items = [self._expressions.expression(item) for item in node.expressions]
            names = [item.alias_or_name for item in node.expressions]
            frame.items = {
                item.alias: value for item, value in zip(node.expressions, items, strict=True) if item.alias
            }
            groups, having = self._groups(node, items)
            order = self._order(node, items)
            limit, offset = self._limit(node)
            distinct = node.args.get("distinct") is not None
            if any(isinstance(item, Star) for item in items):
                if any(join.args.get("using") for join in node.args.get("joins") or []):
                    self._fail("* with USING is not supported", node, "Name the columns, or write ON.")
                items, names = without_star(items, names, list(frame.sources.values()), distinct)
            return Select(items, joins, where, distinct, groups, having, order, limit, offset, names, frame.outer)
        finally:
            self._names.frames.pop()
            if self._names.frames:
                inherited = [c for c in frame.outer if c.source not in self._names.frames[-1].sources.values()]
                self._names.frames[-1].outer += inherited

    def _from(self, node: exp.Select, frame: Frame) -> tuple[list[Join], list[Condition]]:
        """Return the sources of the FROM clause, and conditions of inner joins."""
        joins = [Join(self._source(node.args["from_"].this, frame))]
        where: list[Condition] = []
        for clause in node.args.get("joins") or []:
            side, kind = (clause.side or "").upper(), (clause.kind or "").upper()
            if clause.args.get("method") or side == "FULL" or kind not in ("", "INNER", "OUTER", "CROSS"):
                name = " ".join(filter(None, (clause.method, side, kind))).upper()
                self._fail(f"{name} JOIN is not supported", clause, HINT)
            source = self._source(clause.this, frame)
            conditions = self._using(clause, source, [join.source for join in joins])
            if clause.args.get("on"):
                conditions += conjuncts(self._expressions.condition(clause.args["on"]))
            if side == "RIGHT":
                if len(joins) > 1:
                    self._fail("RIGHT JOIN after another join is not supported", clause, "Write LEFT JOIN.")
                joins = [Join(source), Join(joins[0].source, conditions, True)]
            elif side == "LEFT":
                joins.append(Join(source, conditions, True))
            else:
                joins.append(Join(source))
                where += conditions
        return joins, where

    def _using(self, clause: exp.Join, source: Source, earlier: list[Source]) -> list[Condition]:
        """Return the conditions of USING."""
        conditions: list[Condition] = []
        for column in clause.args.get("using") or []:
            matches = [ColumnOf(s, found[0]) for s in earlier if (found := lookup(column.name, dict(s.columns)))]
            own = lookup(column.name, dict(source.columns))
            if not matches or own is None:
                self._fail(f"USING: both tables need a column `{column.name}`", clause)
            conditions.append(Comparison("=", matches[0], ColumnOf(source, own[0])))
        return conditions

    def _source(self, node: exp.Expression, frame: Frame) -> Source:
        """Add a table or derived table to the names of a query."""
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Func):
            common = self._common_query(node.name)
            if common is not None:
                source = Source("", node.alias_or_name, query=self._isolated(common))
            else:
                table = self._names.table(node)
                source = Source(table.name, node.alias_or_name, table.by_name)
        elif isinstance(node, exp.Subquery):
            source = Source("", node.alias or f"?{len(frame.sources)}", query=self._isolated(node.this))
        else:
            self._fail(f"{node.key.upper()} is not supported in FROM", node, HINT)
        if lookup(source.alias, frame.sources):
            self._fail(f"two tables in FROM are called `{source.alias}`", node, "Give one of them an alias.")
        frame.add(source)
        self._names.text.place(source, node)
        return source

    def _common_query(self, name: str) -> exp.Expression | None:
        for tables in reversed(self._common):
            found = lookup(name, tables)
            if found is not None:
                return found[1]
        return None

    def _isolated(self, node: exp.Expression) -> Query:
        """Read a derived table, which cannot refer to its neighbours."""
        frames, self._names.frames = self._names.frames, []
        try:
            return with_columns(self.query(node))
        finally:
            self._names.frames = frames

    def _groups(self, node: exp.Select, items: list[Expression]) -> tuple[list[Expression], list[Condition]]:
        clause = node.args.get("group")
        groups: list[Expression] = []
        if clause is not None:
            if any(clause.args.get(key) for key in ("rollup", "cube", "grouping_sets", "all")):
                self._fail("ROLLUP, CUBE and GROUPING SETS are not supported", clause, HINT)
            for part in clause.expressions:
                for single in part.expressions if isinstance(part, exp.Tuple) else [part]:
                    groups.append(self._item(single, items))
        having = node.args.get("having")
        if having is not None and not groups:
            self._fail("HAVING needs GROUP BY", having)
        return groups, conjuncts(self._expressions.condition(having.this)) if having is not None else []

    def _item(self, node: exp.Expression, items: list[Expression]) -> Expression:
        """Return an expression of GROUP BY or ORDER BY; a number is the position of an item."""
        value = self._expressions.expression(node)
        if not isinstance(value, Value):
            return value
        if value.kind != "int" or not 1 <= int(value.text) <= len(items):
            self._fail("this is neither a column nor the position of one", node)
        return items[int(value.text) - 1]

    def _order(self, node: exp.Expression, items: list[Expression]) -> list[SortKey]:
        clause = node.args.get("order")
        keys = []
        for key in clause.expressions if clause is not None else ():
            descending = bool(key.args.get("desc"))
            if bool(key.args.get("nulls_first")) != nulls_first(self._names.database.dialect, descending):
                self._fail("NULLS FIRST and NULLS LAST are not supported", key, HINT)
            alias = None if isinstance(key.this, exp.Column) and key.this.table else key.this.name
            named = lookup(alias, self._names.frames[-1].items) if alias else None
            value = named[1] if named and isinstance(key.this, exp.Column) else self._item(key.this, items)
            keys.append(SortKey(value, descending))
        return keys

    def _limit(self, node: exp.Expression) -> tuple[int | None, int | None]:
        found: list[int | None] = []
        for name in ("limit", "offset"):
            clause = node.args.get(name)
            value = None
            if clause is not None:
                literal = clause.args.get("expression") or clause.args.get("count")
                if not isinstance(literal, exp.Literal) or literal.is_string or not literal.this.isdigit():
                    self._fail(f"{name.upper()} takes a number", clause)
                value = int(literal.this)
                if name == "limit" and value == 0:
                    self._fail("LIMIT 0 has no rows", clause)
            found.append(value or None if name == "offset" else value)
        return found[0], found[1]

    def _combination(self, node: exp.SetOperation) -> Combination:
        operator = SET_OPERATIONS[type(node)]
        if not node.args.get("distinct"):
            if operator != "UNION":
                self._fail(f"{operator} ALL is not supported", node, HINT)
            operator = "UNION ALL"
        operands: list[Select] = []
        for part in (node.this, node.expression):
            read = self.query(part)
            if isinstance(read, Combination):
                if read.operator != operator or part is node.expression or read.limit or read.order:
                    self._fail(f"{read.operator} within {operator} is not supported", node, HINT)
                operands += read.operands
            else:
                operands.append(read)
        widths = {len(operand.items) for operand in operands}
        if len(widths) > 1:
            self._fail(f"the queries of {operator} have different numbers of columns", node)
        limit, offset = self._limit(node)
        return Combination(operator, operands, self._combined_order(node, operands[0]), limit, offset)

    def _combined_order(self, node: exp.SetOperation, first: Select) -> list[SortKey]:
        """Return the order of a set operation, by positions: names are those of the first query's items."""
        clause = node.args.get("order")
        keys = []
        for key in clause.expressions if clause is not None else ():
            inner = key.this
            names = {name: position for position, name in enumerate(first.names, 1)}
            if isinstance(inner, exp.Column) and (found := lookup(inner.name, names)):
                position = found[1]
            elif (
                isinstance(inner, exp.Literal) and inner.this.isdigit() and 0 < int(inner.this) <= len(first.items)
            ):
                position = int(inner.this)
            else:
                self._fail("ORDER BY after a set operation takes a column of its first query", key)
            keys.append(SortKey(Value("int", str(position)), bool(key.args.get("desc"))))
        return keys


def without_star(
    items: list[Expression], names: list[str], sources: list[Source], columns: bool
) -> tuple[list[Expression], list[str]]:
    """Replace `*` by all `columns`, or in joins by those of each table in turn; derived tables have columns."""
    columns = columns or (len(items) > 1 and len(sources) == 1)
    expand = columns or len(sources) > 1 or any(source.query is not None for source in sources)
    found: list[tuple[Expression, str]] = []
    for item, name in zip(items, names, strict=True):
        if not isinstance(item, Star):
            found.append((item, name))
        elif not expand:
            found.append((Star(), "*"))
        else:
            for source in [item.source] if item.source else sources:
                if columns or source.query is not None:
                    known = source.columns if source.query is None else source.query.names
                    found += [(ColumnOf(source, column), column) for column in known]
                else:
                    found.append((Star(source), "*"))
    return [item for item, _ in found], [name for _, name in found]


def with_columns(query: Query) -> Query:
    """Return a derived table with columns instead of `*`."""
    for select in [query] if isinstance(query, Select) else query.operands:
        if any(isinstance(item, Star) for item in select.items):
            select.items, select.names = without_star(select.items, select.names, select.sources, True)
    return query


def nulls_first(dialect: str, descending: bool) -> bool:
    """Return where a dialect puts NULL if the query does not say so."""
    return {"sqlite": not descending, "postgres": descending}.get(dialect, False)


def conjuncts(condition: Condition) -> list[Condition]:
    """Return the parts of a conjunction."""
    return list(condition.parts) if isinstance(condition, Both) and condition.operator == "AND" else [condition]
