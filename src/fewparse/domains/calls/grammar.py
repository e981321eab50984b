"""The grammar of programs in the notation `call`, made from declarations of functions."""

from fewparse.domains.calls.decimals import Rules
from fewparse.domains.calls.declarations import Declarations, FunctionDeclaration
from fewparse.domains.calls.program import written_name
from fewparse.domains.calls.values import SEPARATOR, NotEnforceable, ValueRules
from fewparse.grammar.rules import Grammar, Production, Ref, Text, trim

START = "start"
ENFORCED = frozenset(("type", "properties", "required", "additionalProperties", "description", "default"))


def function_grammar(function: FunctionDeclaration, declarations: Declarations) -> Grammar:
    """Return the grammar of the calls of one function; raise `NotEnforceable` with the path of a keyword."""
    rules: Rules = {START: ()}
    rules[START] = (call_production(function, ValueRules(rules, declarations.definitions), START),)
    trimmed = trim(Grammar(rules, START)).grammar
    if not trimmed.rules:
        raise NotEnforceable(function.name, "no call is valid: a required argument has no value")
    return trimmed


def call_production(function: FunctionDeclaration, values: ValueRules, name: str) -> Production:
    """Return the symbols of the calls of a function."""
    for keyword in function.parameters:
        if keyword not in ENFORCED:
            raise NotEnforceable(f"{function.name}.{keyword}", "a grammar cannot enforce this keyword")
    members = [
        (f"{written_name(key)}=", values.value(schema, f"{function.name}.{key}"), key in function.required)
        for key, schema in function.arguments.items()
    ]
    return (Text(f"{written_name(function.name)}("), *values.members(members, name, ")"))


def program_grammar(declarations: Declarations, several: bool) -> Grammar:
    """Return the grammar of all programs."""
    rules: Rules = {}
    values = ValueRules(rules, declarations.definitions)
    calls = []
    for i, function in enumerate(declarations.functions):
        rules[f"call_{i}"] = ()
        rules[f"call_{i}"] = (call_production(function, values, f"call_{i}"),)
        calls.append((Ref(f"call_{i}"),))
    rules["call"] = tuple(calls)
    if not several:
        rules[START] = ((Ref("call"),),)
    else:
        rules["calls"] = ((Ref("call"),), (Ref("calls"), Text(SEPARATOR), Ref("call")))
        rules[START] = ((Text("["), Ref("calls"), Text("]")),)
    return trim(Grammar(rules, START)).grammar
