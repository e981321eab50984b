"""Replace expressions within queries."""

from collections.abc import Callable
from dataclasses import replace

from fewparse.domains.sql.query import (
    Aggregate,
    Between,
    Both,
    Calculation,
    Combination,
    Comparison,
    Condition,
    Exists,
    Expression,
    In,
    IsNull,
    Like,
    Query,
    Select,
    SortKey,
    SubQuery,
)

Replace = Callable[[Expression], Expression]
"""Returns what an expression is replaced by; expressions within it have been replaced before."""


def in_expression(expression: Expression, change: Replace) -> Expression:
    """Return an expression with its parts replaced."""
    match expression:
        case Calculation(left=left, right=right):
            expression = replace(expression, left=in_expression(left, change), right=in_expression(right, change))
        case Aggregate(argument=argument) if argument is not None:
            expression = replace(expression, argument=in_expression(argument, change))
        case SubQuery(query=query):
            expression = SubQuery(in_query(query, change))
    return change(expression)


def in_condition(condition: Condition, change: Replace) -> Condition:
    """Return a condition with its expressions replaced."""
    match condition:
        case Both(parts=parts):
            return replace(condition, parts=tuple(in_condition(part, change) for part in parts))
        case Comparison(left=left, right=right):
            return replace(condition, left=in_expression(left, change), right=in_expression(right, change))
        case Between(value=value, low=low, high=high):
            first, second, third = (in_expression(part, change) for part in (value, low, high))
            return replace(condition, value=first, low=second, high=third)
        case In(value=value, choices=choices):
            inner = (
                tuple(in_expression(choice, change) for choice in choices)
                if isinstance(choices, tuple)
                else in_query(choices, change)
            )
            return In(in_expression(value, change), inner, condition.negated)
        case Like(value=value) | IsNull(value=value):
            return replace(condition, value=in_expression(value, change))
        case Exists(query=query):
            return replace(condition, query=in_query(query, change))


def in_query(query: Query, change: Replace) -> Query:
    """Return a query with its expressions replaced, but not those of its derived tables."""
    if isinstance(query, Combination):
        replaced = [in_query(operand, change) for operand in query.operands]
        operands = [operand for operand in replaced if isinstance(operand, Select)]
        return replace(query, operands=operands, order=in_order(query.order, change))
    return replace(
        query,
        items=[in_expression(item, change) for item in query.items],
        joins=[
            replace(join, conditions=[in_condition(c, change) for c in join.conditions]) for join in query.joins
        ],
        where=[in_condition(c, change) for c in query.where],
        groups=[in_expression(group, change) for group in query.groups],
        having=[in_condition(c, change) for c in query.having],
        order=in_order(query.order, change),
        outer=[column for c in query.outer if isinstance(column := change(c), type(c))],
    )


def in_order(order: list[SortKey], change: Replace) -> list[SortKey]:
    """Return keys of ORDER BY with their expressions replaced."""
    return [replace(key, value=in_expression(key.value, change)) for key in order]


def with_queries(query: Select, change: Callable[[Query], Query]) -> Select:
    """Return a query with the sub-queries of its items and conditions replaced."""

    def changed(expression: Expression) -> Expression:
        return SubQuery(change(expression.query)) if isinstance(expression, SubQuery) else expression

    def condition(found: Condition) -> Condition:
        match found:
            case Both(parts=parts):
                return replace(found, parts=tuple(condition(part) for part in parts))
            case Comparison(left=left, right=right):
                return replace(found, left=changed(left), right=changed(right))
            case In(choices=choices) if not isinstance(choices, tuple):
                return replace(found, choices=change(choices))
            case Exists(query=inner):
                return replace(found, query=change(inner))
        return found

    return replace(
        query,
        items=[changed(item) for item in query.items],
        where=[condition(c) for c in query.where],
        having=[condition(c) for c in query.having],
    )
