"""The grammar of programs in the notation `call`, made from declarations of functions."""

from collections.abc import Iterator

from fewparse.domains.calls.decimals import Rules
from fewparse.domains.calls.declarations import Declarations, FunctionDeclaration
from fewparse.domains.calls.program import written_name
from fewparse.domains.calls.schemas import Schema
from fewparse.domains.calls.values import SEPARATOR, NotEnforceable, ValueRules
from fewparse.grammar.rules import Grammar, Production, Ref, Text, trim

START = "start"
ENFORCED = frozenset(("type", "properties", "required", "additionalProperties", "description", "default"))


def function_grammar(function: FunctionDeclaration, declarations: Declarations) -> Grammar:
    """Return the grammar of the calls of one function; raise `NotEnforceable` with the path of a keyword."""
    rules: Rules = {START: ()}
    rules[START] = call_productions(function, ValueRules(rules, declarations.definitions), START)
    trimmed = trim(Grammar(rules, START)).grammar
    if not trimmed.rules:
        raise NotEnforceable(function.name, "no call is valid: a required argument has no value")
    return trimmed


def call_productions(function: FunctionDeclaration, values: ValueRules, name: str) -> tuple[Production, ...]:
    """Return the calls of a function: one production or, if its parameters have alternatives, one for each."""
    return tuple(
        (Text(f"{written_name(function.name)}("), *values.members(arguments(schema, function, values), name, ")"))
        for schema in alternatives(function.parameters, function.name, values)
    )


def alternatives(schema: Schema, path: str, values: ValueRules) -> Iterator[Schema]:
    """Yield the schemas of parameters without `anyOf` and `oneOf`."""
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            for branch in values.branches(schema, keyword, path):
                yield from alternatives(branch, path, values)
            return
    yield schema


def arguments(schema: Schema, function: FunctionDeclaration, values: ValueRules) -> list[tuple[str, Ref, bool]]:
    """Return the arguments of parameters: the text before a value, its rule, and whether it is required."""
    for keyword in schema:
        if keyword not in ENFORCED:
            raise NotEnforceable(f"{function.name}.{keyword}", "a grammar cannot enforce this keyword")
    required = schema.get("required", ())
    return [
        (f"{written_name(key)}=", values.value(each, f"{function.name}.{key}"), key in required)
        for key, each in schema.get("properties", {}).items()
    ]


def program_grammar(declarations: Declarations, several: bool) -> Grammar:
    """Return the grammar of all programs."""
    rules: Rules = {}
    values = ValueRules(rules, declarations.definitions)
    calls = []
    for i, function in enumerate(declarations.functions):
        rules[f"call_{i}"] = ()
        rules[f"call_{i}"] = call_productions(function, values, f"call_{i}")
        calls.append((Ref(f"call_{i}"),))
    rules["call"] = tuple(calls)
    if not several:
        rules[START] = ((Ref("call"),),)
    else:
        rules["calls"] = ((Ref("call"),), (Ref("calls"), Text(SEPARATOR), Ref("call")))
        rules[START] = ((Text("["), Ref("calls"), Text("]")),)
    return trim(Grammar(rules, START)).grammar
