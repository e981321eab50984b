"""Read expressions and conditions of SQL. Negation is moved inwards, so that only predicates are negated."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn

from sqlglot import exp

from fewparse.domains.sql.names import Names
from fewparse.domains.sql.query import (
    Aggregate,
    Between,
    Both,
    Calculation,
    ColumnOf,
    Comparison,
    Condition,
    Exists,
    Expression,
    In,
    IsNull,
    Like,
    Query,
    Star,
    SubQuery,
    Value,
)

NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
AGGREGATES: dict[type[exp.Expression], str] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Avg: "AVG",
    exp.Min: "MIN",
    exp.Max: "MAX",
}
OPERATORS: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.GT: ">",
    exp.LTE: "<=",
    exp.GTE: ">=",
}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}
SWAPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
OTHERS: dict[type[exp.Expr], str] = {
    exp.NullSafeEQ: "IS with a value",
    exp.NullSafeNEQ: "IS NOT with a value",
    exp.DPipe: "||",
    exp.Mod: "%",
}
"""Operators that the language does not have, as they are written."""
REAL_TYPES = {"REAL", "FLOAT", "DOUBLE", "DECIMAL", "BIGDECIMAL"}
INTEGER_TYPES = {"INT", "BIGINT", "SMALLINT", "TINYINT", "INT128"}
ONE = Value("dec", "1.0")


class ExpressionReader:
    """Reads the expressions and conditions of a query; `query` reads a sub-query."""

    def __init__(self, names: Names, query: Callable[[exp.Expression], Query]) -> None:
        self._names = names
        self._query = query
        self._fail = names.text.fail

    def expression(self, node: exp.Expression) -> Expression:
        """Return an expression."""
        found = self._expression(node)
        self._names.text.place(found, node)
        return found

    def _expression(self, node: exp.Expression) -> Expression:
        match node:
            case exp.Paren() | exp.Alias():
                return self.expression(node.this)
            case exp.Column():
                if isinstance(node.this, exp.Star):
                    return Star(self._names.source(node, node.table))
                return self._names.column(node)
            case exp.Star():
                return Star()
            case exp.Literal():
                return Value("text", node.this) if node.is_string else number(node.this)
            case exp.Boolean():
                return Value("bool", "TRUE" if node.this else "FALSE")
            case exp.Neg():
                inner = self.expression(node.this)
                if isinstance(inner, Value) and inner.kind in ("int", "dec"):
                    return number(str(-Decimal(inner.text)))
                return Calculation("-", Value("int", "0"), inner)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return SubQuery(self._query(node))
            case exp.Cast():
                return self._cast(node)
            case exp.Nullif():
                if self.expression(node.expression) == Value("int", "0"):
                    return self.expression(node.this)  # division writes it again
        if type(node) in AGGREGATES:
            return self._aggregate(node)
        if type(node) in OPERATORS:
            return self._calculation(node)
        self._unsupported(node)

    def _cast(self, node: exp.Cast) -> Expression:
        """Return a cast of a literal as a literal, and a cast of an integer to a real number as a product."""
        target = node.to.this.value if isinstance(node.to, exp.DataType) else ""
        inner = self.expression(node.this)
        if isinstance(inner, Value) and target in ("DATE", "TIMESTAMP", "DATETIME", "TIME", "TEXT", "VARCHAR"):
            return inner
        if target in INTEGER_TYPES and is_integer(inner):
            return inner
        if target in REAL_TYPES:
            parent = node.parent
            if isinstance(parent, exp.Mul) and target == "DOUBLE":
                return inner  # multiplication writes it again
            return Calculation("*", inner, ONE)
        self._unsupported(node)

    def _aggregate(self, node: exp.Expression) -> Aggregate:
        argument = node.this
        if node.expressions:
            self._fail(f"{node.key.upper()} with several arguments is not supported", node)
        distinct = isinstance(argument, exp.Distinct)
        if distinct:
            if len(argument.expressions) != 1:
                self._fail("DISTINCT within an aggregate takes one argument", node)
            argument = argument.expressions[0]
        function = AGGREGATES[type(node)]
        if function in ("MIN", "MAX"):
            distinct = False
        inner = self.expression(argument)
        if isinstance(inner, Star) or (function == "COUNT" and isinstance(inner, Value) and not distinct):
            return Aggregate("COUNT")
        return Aggregate(function, inner, distinct)  # type: ignore[arg-type]

    def _calculation(self, node: exp.Expression) -> Expression:
        operator = OPERATORS[type(node)]
        left, right = self.expression(node.this), self.expression(node.expression)
        if is_number(left) and is_number(right):
            folded = folded_number(operator, left, right)
            if folded is not None:
                return folded
        if operator in "+*" and is_number(left):
            left, right = right, left
        return Calculation(operator, left, right)  # type: ignore[arg-type]

    def condition(self, node: exp.Expression, negated: bool = False) -> Condition:
        """Return a condition, or its negation."""
        found = self._condition(node, negated)
        self._names.text.place(found, node)
        return found

    def _condition(self, node: exp.Expression, negated: bool) -> Condition:
        match node:
            case exp.Paren():
                return self.condition(node.this, negated)
            case exp.Not():
                return self.condition(node.this, not negated)
            case exp.And() | exp.Or():
                operator = "AND" if isinstance(node, exp.And) != negated else "OR"
                parts = [self.condition(part, negated) for part in (node.this, node.expression)]
                return joined(operator, parts)
            case exp.Between():
                value, low, high = (self.expression(node.args[key]) for key in ("this", "low", "high"))
                return Between(value, low, high, negated)
            case exp.In():
                return self._in(node, negated)
            case exp.Like():
                pattern = self.expression(node.expression)
                if not isinstance(pattern, Value):
                    self._fail("LIKE takes a pattern in quotation marks", node)
                return Like(self.expression(node.this), pattern.text, negated != bool(node.args.get("negate")))
            case exp.Is():
                return self._is(node, negated)
            case exp.Exists():
                return Exists(self._query(node.this), negated)
            case exp.Boolean():
                self._fail("a condition that is always true or false is not supported", node)
        if type(node) in COMPARISONS:
            return self._comparison(node, negated)
        value = self.expression(node)
        if isinstance(value, ColumnOf):
            return truth(value, not negated)
        self._unsupported(node)

    def _comparison(self, node: exp.Expression, negated: bool) -> Condition:
        operator = COMPARISONS[type(node)]
        if isinstance(node.expression, exp.Any | exp.All):
            quantified = ("=" if isinstance(node.expression, exp.Any) else "<>") == operator
            if not quantified:
                name = f"{operator} {node.expression.key.upper()}"
                self._fail(f"`{name}` is not supported", node, "Compare with MIN or MAX of the sub-query.")
            query = self._query(node.expression.this)
            return In(self.expression(node.this), query, (operator == "<>") != negated)
        if negated:
            operator = NEGATED[operator]
        left, right = self.expression(node.this), self.expression(node.expression)
        if isinstance(left, Value | SubQuery) and not isinstance(right, Value | SubQuery):
            left, right, operator = right, left, SWAPPED[operator]
        return Comparison(operator, left, right)

    def _in(self, node: exp.In, negated: bool) -> Condition:
        value = self.expression(node.this)
        query = node.args.get("query")
        if query is not None:
            return In(value, self._query(query), negated)
        choices = [self.expression(choice) for choice in node.expressions]
        if not choices:
            self._fail("IN takes at least one value", node)
        if len(choices) == 1:
            return Comparison("<>" if negated else "=", value, choices[0])
        return In(value, tuple(choices), negated)

    def _is(self, node: exp.Is, negated: bool) -> Condition:
        value = self.expression(node.this)
        if isinstance(node.expression, exp.Null):
            return IsNull(value, negated)
        if isinstance(node.expression, exp.Boolean) and not negated and isinstance(value, ColumnOf):
            return truth(value, bool(node.expression.this))
        self._unsupported(node)

    def _unsupported(self, node: exp.Expression) -> NoReturn:
        """Raise `SqlError` with the name of a construct that the language does not have."""
        name = self._names.text.function_name(node) or OTHERS.get(type(node))
        if name is None:
            name = node.sql_name() if isinstance(node, exp.Func) else node.key.upper()
        self._fail(f"{name} is not supported", node, "docs/sql.md lists what SQL domains can express.")


def joined(operator: str, parts: list[Condition]) -> Both:
    """Return a conjunction or disjunction; nested ones of the same kind are merged."""
    flat: list[Condition] = []
    for part in parts:
        flat += part.parts if isinstance(part, Both) and part.operator == operator else [part]
    return Both(operator, tuple(flat))  # type: ignore[arg-type]


def truth(column: ColumnOf, true: bool) -> Condition:
    """Return the condition that a column is true: of integers, that it is not 0."""
    described = column.source.columns.get(column.name)
    if described is not None and described.type == "integer":
        return Comparison("<>" if true else "=", column, Value("int", "0"))
    return Comparison("=", column, Value("bool", "TRUE" if true else "FALSE"))


def is_integer(expression: Expression) -> bool:
    """Return whether an expression is an integer whatever the rows are."""
    match expression:
        case ColumnOf(source=source, name=name):
            return source.query is None and source.columns[name].type == "integer"
        case Calculation(operator=operator, left=left, right=right):
            return operator != "*" and is_integer(left) and is_integer(right)
        case Aggregate(function=function, argument=argument):
            return function == "COUNT" or (function != "AVG" and argument is not None and is_integer(argument))
    return isinstance(expression, Value) and expression.kind == "int"


def is_number(expression: Expression) -> bool:
    """Return whether an expression is a numeric literal."""
    return isinstance(expression, Value) and expression.kind in ("int", "dec")


def number(text: str) -> Value:
    """Return a numeric literal in its one form: without exponent, leading and superfluous trailing zeros."""
    is_integer = text.lstrip("+-").isdigit()
    written = format(Decimal(text), "f")
    if is_integer:
        return Value("int", str(int(written)))
    whole, _, fraction = written.partition(".")
    return Value("dec", f"{whole}.{fraction.rstrip('0') or '0'}")


def folded_number(operator: str, left: Expression, right: Expression) -> Value | None:
    """Return the result of arithmetic with two literals; None for a division."""
    assert isinstance(left, Value)
    assert isinstance(right, Value)
    one, other = Decimal(left.text), Decimal(right.text)
    if operator == "/":
        return None
    result = one + other if operator == "+" else one - other if operator == "-" else one * other
    text = format(result, "f")
    if left.kind == right.kind == "int":
        return number(text)
    return number(text if "." in text else f"{text}.0")
