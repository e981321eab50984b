"""Describe functions to a language model: one line each, with its signature and what it and its arguments are."""

from collections.abc import Mapping

from fewparse.domains.calls.declarations import Declarations, FunctionDeclaration
from fewparse.domains.calls.program import written_name, written_value
from fewparse.domains.calls.schemas import REFERENCE, Schema
from fewparse.text import one_line

MAX_DEPTH = 3
MAX_TEXT = 200
MAX_CONSTANTS = 30


def describe(declarations: Declarations) -> str:
    """Return the lines of all functions."""
    return "\n".join(description_line(function, declarations) for function in declarations.functions)


def description_line(function: FunctionDeclaration, declarations: Declarations) -> str:
    """Return a line such as `get_weather(city: string, days?: integer) - Weather of a city. city: its name`."""
    definitions = declarations.definitions
    arguments = (
        f"{written_name(name)}{'' if name in function.required else '?'}: {type_text(schema, definitions)}"
        for name, schema in function.arguments.items()
    )
    explained = (
        f"{written_name(name)}: {one_line(schema['description'].rstrip('.'), MAX_TEXT)}"
        for name, schema in function.arguments.items()
        if "description" in schema
    )
    about = " ".join(filter(None, (sentence(function.description), "; ".join(explained))))
    signature = f"{written_name(function.name)}({', '.join(arguments)})"
    return f"{signature} - {about}" if about else signature


def sentence(text: str) -> str:
    """Return a description, shortened if it is long, with a full stop."""
    text = one_line(text, MAX_TEXT)
    return text if not text or text[-1] in ".!?" else f"{text}."


def type_text(schema: Schema, definitions: Mapping[str, Schema], depth: int = 0) -> str:
    """Return a schema as a type, in the notation of TypeScript."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REFERENCE)
        return name if depth >= MAX_DEPTH else type_text(definitions[name], definitions, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            branches = (type_text(each, definitions, depth + 1) for each in schema[keyword])
            return " | ".join(dict.fromkeys(branches))
    if "enum" in schema:
        constants = [written_value(value) for value in schema["enum"]]
        return " | ".join(constants[:MAX_CONSTANTS] + ["..."] * (len(constants) > MAX_CONSTANTS))
    types = schema.get("type", "any")
    names = [types] if isinstance(types, str) else types
    return " | ".join(one_type(schema, name, definitions, depth) for name in names)


def one_type(schema: Schema, name: str, definitions: Mapping[str, Schema], depth: int) -> str:
    """Return the text of one type of a schema."""
    if name == "string" and "format" in schema:
        return f"string ({schema['format']})"
    if name == "array" and isinstance(schema.get("items"), dict):
        inner = type_text(schema["items"], definitions, depth + 1)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if name == "object" and schema.get("properties") and depth < MAX_DEPTH:
        required = schema.get("required", ())
        members = (
            f"{written_value(key)}{'' if key in required else '?'}: {type_text(each, definitions, depth + 1)}"
            for key, each in schema["properties"].items()
        )
        return f"{{{', '.join(members)}}}"
    return name
