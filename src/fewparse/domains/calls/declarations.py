"""Declarations of functions: name, description and parameters; their file `functions.json`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fewparse.domains.calls.references import SpecDocument
from fewparse.domains.calls.schemas import REFERENCE, Normaliser, Schema, described
from fewparse.errors import SourceError, shortened
from fewparse.files import DuplicateKey, read_text, unique_object, value_reason
from fewparse.json_schema.document import NUMBERS
from fewparse.text import CONTROLS, is_unicode

FUNCTIONS = "functions.json"
MAX_NAME_CHARS = 500
LISTS = ("functions", "tools", "functionDeclarations", "function_declarations")
COMBINING = frozenset(("$ref", "allOf", "anyOf", "oneOf"))


@dataclass(frozen=True)
class FunctionDeclaration:
    """A function. `parameters` is the JSON Schema of an object with its arguments, in the order of declaration.

    `http` is how a call becomes a request, for an operation of an OpenAPI document.
    """

    name: str
    description: str
    parameters: Schema
    http: dict[str, Any] | None = None

    @property
    def arguments(self) -> dict[str, Schema]:
        """The schema of each argument."""
        found: dict[str, Schema] = self.parameters.get("properties", {})
        return found

    @property
    def required(self) -> frozenset[str]:
        """The names of the arguments that must be given."""
        return frozenset(self.parameters.get("required", ()))

    def as_dict(self) -> dict[str, Any]:
        """Return the declaration as a JSON object."""
        shown = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return shown if self.http is None else {**shown, "http": self.http}


@dataclass(frozen=True)
class Declarations:
    """Functions with distinct names, and the schemas that their parameters refer to (`#/$defs/NAME`)."""

    functions: tuple[FunctionDeclaration, ...]
    definitions: Mapping[str, Schema] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, FunctionDeclaration]:
        """The functions by name."""
        return {function.name: function for function in self.functions}

    def schema_of(self, function: FunctionDeclaration) -> Schema:
        """Return the schema of the arguments of a function, complete with its definitions and without others."""
        closed = {} if COMBINING & function.parameters.keys() else {"additionalProperties": False}
        schema = {**function.parameters, **closed}
        return {**schema, **self._definitions_of(schema)}

    def call_schema(self, function: FunctionDeclaration) -> Schema:
        """Return the schema of the calls of a function in the notation `json`."""
        schema = self.schema_of(function)
        definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
        properties = {"name": {"enum": [function.name]}, "arguments": schema}
        closed = {"required": ["name", "arguments"], "additionalProperties": False}
        return {"type": "object", "properties": properties, **closed, **definitions}

    def _definitions_of(self, schema: Schema) -> dict[str, Any]:
        """Return `$defs` with the definitions that a schema refers to, directly or not."""
        found: dict[str, Schema] = {}
        agenda: list[Any] = [schema]
        while agenda:
            match agenda.pop():
                case dict(value):
                    reference = value.get("$ref")
                    name = reference.removeprefix(REFERENCE) if isinstance(reference, str) else ""
                    if name in self.definitions and name not in found:
                        found[name] = self.definitions[name]
                        agenda.append(found[name])
                    agenda += value.values()
                case list(values):
                    agenda += values
        return {"$defs": found} if found else {}

    def to_json(self) -> str:
        """Return the content of functions.json."""
        value: dict[str, Any] = {"functions": [function.as_dict() for function in self.functions]}
        if self.definitions:
            value["$defs"] = dict(self.definitions)
        return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def read_declarations(path: Path) -> Declarations:
    """Read functions.json, or any list of tools: of OpenAI's format, or of the Model Context Protocol (MCP)."""
    return declarations_of(SpecDocument(read_json(path), str(path)))


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; a mistake is a `SourceError` with its line."""
    source = read_text(path, SourceError)
    try:
        return json.loads(source, object_pairs_hook=unique_object, **NUMBERS)
    except json.JSONDecodeError as error:
        raise SourceError(f"not valid JSON: {error.msg}", path, error.lineno, error.colno, source) from None
    except DuplicateKey as error:
        raise SourceError(f"the key {error.args[0]!r} occurs twice", path) from None
    except RecursionError:
        raise SourceError("its values are nested too deeply", path) from None
    except ValueError as error:
        raise SourceError(f"not readable JSON: {value_reason(error)}", path) from None


def declarations_of(document: SpecDocument) -> Declarations:
    """Return the declarations of a document; raise `SourceError` for a mistake."""
    root = document.root
    if isinstance(root, dict) and isinstance(root.get("result"), dict):
        root = root["result"]  # a response of JSON-RPC
    key = next((key for key in LISTS if isinstance(root, dict) and key in root), None)
    entries = root if isinstance(root, list) else root[key] if key is not None else [root]
    if not isinstance(entries, list) or (entries == [root] and not is_function(root)):
        raise document.error(
            "",
            "not a list of functions",
            'Expected a list of tools, such as [{"name": ..., "description": ..., "parameters": ...}], as '
            'OpenAI\'s API takes it, or the answer of an MCP server, {"tools": [...]}.',
        )
    definitions: dict[str, Schema] = {}
    normaliser = Normaliser(document, definitions)
    try:
        functions = tuple(
            declaration(entry, f"{key or 'tools'}[{i}]", document, normaliser) for i, entry in enumerate(entries)
        )
    except RecursionError:
        raise document.error("", "its values are nested too deeply") from None
    check_names((function.name for function in functions), document)
    return Declarations(functions, definitions)


def is_function(value: Any) -> bool:
    """Return whether a value looks like the declaration of one function."""
    return isinstance(value, dict) and "name" in root_of(value)


def root_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the function of an entry: the value of `function` in OpenAI's format, else the entry itself."""
    inner = entry.get("function")
    return inner if isinstance(inner, dict) else entry


def declaration(entry: Any, where: str, document: SpecDocument, normaliser: Normaliser) -> FunctionDeclaration:
    """Return the declaration of one entry of a list of tools."""
    if not isinstance(entry, dict):
        raise document.error(where, "must be an object with `name` and `parameters`")
    if entry.get("type", "function") != "function" and "function" not in entry and "name" not in entry:
        raise document.error(where, f"a tool of the type {shortened(str(entry['type']))} is not a function")
    function = root_of(entry)
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        raise document.error(where, "`name` is missing or not a text")
    key = next((key for key in ("parameters", "inputSchema", "input_schema") if key in function), None)
    given = {} if key is None or function[key] is None else function[key]
    if isinstance(given, dict) and ("$defs" in given or "definitions" in given):
        normaliser = Normaliser(SpecDocument(given, document.path), normaliser.definitions)
    schema = normaliser.expanded(normaliser.schema(given, f"{name}.{key}"))
    parameters = parameters_of(schema, name, document)
    http = function.get("http")
    return FunctionDeclaration(name, described(function.get("description", "")), parameters, http)


def parameters_of(schema: Schema, name: str, document: SpecDocument) -> Schema:
    """Return the schema of the arguments, an object; raise `SourceError` if it is another one."""
    if "object" not in (schema.get("type", "object"), *schema.get("type", ())):
        raise document.error(name, "`parameters` must be the schema of an object")
    return {**schema, "type": "object"}


def check_names(names: Iterable[str], document: SpecDocument) -> None:
    """Raise `SourceError` for names that occur twice or cannot be written."""
    seen: set[str] = set()
    for name in names:
        if len(name) > MAX_NAME_CHARS or CONTROLS.search(name) or "\n" in name or not is_unicode(name):
            raise document.error(shortened(name), "the name of a function must be printable text on one line")
        if name in seen:
            raise document.error(shortened(name), "two functions have this name", "Rename one of them.")
        seen.add(name)
    if not seen:
        raise document.error("", "there are no functions")
