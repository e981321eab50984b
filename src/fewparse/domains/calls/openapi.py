"""Read the operations of OpenAPI documents, versions 3.0 and 3.1, as functions.

The parameters in path, query, headers and cookies and the JSON body of a request become arguments. The properties
of a body that is an object become arguments of their own, if that loses nothing; else the argument `body` is the
whole. `http` of a declaration has what `http_request.py` needs to make a request of a call.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from fewparse.domains.calls.declarations import Declarations, FunctionDeclaration, check_names
from fewparse.domains.calls.references import SpecDocument
from fewparse.domains.calls.schemas import Normaliser, Schema, described
from fewparse.domains.calls.yaml_document import read_document
from fewparse.errors import SourceError, shortened
from fewparse.grammar.rules import fresh_name

VERSIONS = ("3.0", "3.1")
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
IGNORED_HEADERS = ("accept", "content-type", "authorization")
"""Parameters that OpenAPI says to ignore: other parts of a document describe them."""
JSON_TYPE = re.compile(r"(?:application|text)/(?:[\w.+-]+\+)?json\b|\*/\*|application/\*", re.IGNORECASE)
FORM_TYPE = "application/x-www-form-urlencoded"
STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
"""How values are written by default, for each place of a parameter."""
BODY = "body"
LAST = ("header", "cookie")
"""Places of parameters that come after the others: people speak of them least."""
FLAT_KEYWORDS = frozenset(("type", "properties", "required", "additionalProperties", "description", "default"))


def read_openapi(path: Path, skip: bool = False) -> tuple[Declarations, list[str], str]:
    """Return the operations of a file, the reasons for those that were left out, and the title of the document.

    With `skip`, operations that cannot be read are left out; without it, they are errors. Raises `SourceError` for
    a document of another version and for mistakes.
    """
    return operations_of(read_document(path), skip)


def operations_of(document: SpecDocument, skip: bool = False) -> tuple[Declarations, list[str], str]:
    """Return the operations of a document as `read_openapi` does."""
    check_version(document)
    try:
        declarations, left_out = OperationReader(document, skip).read()
    except RecursionError:
        raise document.error("", "its values are nested too deeply") from None
    info = document.root.get("info")
    title = described(info.get("title", "")) if isinstance(info, dict) else ""
    return declarations, left_out, title


def check_version(document: SpecDocument) -> None:
    """Raise `SourceError` if a document is not OpenAPI 3.0 or 3.1."""
    root = document.root
    if not isinstance(root, dict) or not {"openapi", "swagger"} & root.keys():
        hint = "An OpenAPI document has the key `openapi` with its version, such as 3.1.0."
        raise document.error("", "not an OpenAPI document", hint)
    version = str(root.get("openapi", root.get("swagger")))
    if "swagger" in root or not f"{version}.".startswith(tuple(f"{known}." for known in VERSIONS)):
        hint = "Convert it to version 3.0 or 3.1 first." + (
            " For 2.0, for example: npx swagger2openapi FILE" if version.startswith("2") else ""
        )
        raise document.error("", f"OpenAPI {shortened(version)} is not supported", hint)


class OperationReader:
    """Reads the operations of one document."""

    def __init__(self, document: SpecDocument, skip: bool) -> None:
        self._document = document
        self._skip = skip
        self._definitions: dict[str, Schema] = {}
        self._schemas = Normaliser(document, self._definitions)
        self._body_schemas = Normaliser(document, self._definitions, writing=True)
        self._left_out: list[str] = []
        self._made: set[str] = set()

    def read(self) -> tuple[Declarations, list[str]]:
        """Return all operations, and what was left out."""
        functions = tuple(self._functions())
        check_names((function.name for function in functions), self._document)
        return Declarations(functions, self._definitions), self._left_out

    def _functions(self) -> Iterator[FunctionDeclaration]:
        paths = self._object(self._document.root.get("paths") or {}, "paths")
        for path, item in paths.items():
            where = f"paths.{path}"
            item = self._object(self._document.resolve(item, where), where)
            for method in METHODS:
                if method not in item:
                    continue
                at = f"{where}.{method}"
                try:
                    yield self._function(str(path), method, item, at)
                except SourceError as error:
                    if not self._skip:
                        raise
                    self._left_out.append(error.message)

    def _function(self, path: str, method: str, item: dict[str, Any], where: str) -> FunctionDeclaration:
        operation = self._object(item[method], where)
        name = operation.get("operationId") or self._made_name(method, path)
        if not isinstance(name, str):
            raise self._document.error(where, "`operationId` must be a text")
        http: dict[str, Any] = {"method": method.upper(), "url": self._base_url(item, operation) + path}
        http["arguments"] = places = {}
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for parameter, at in self._parameters(item, operation, where):
            key = fresh_argument(parameter["name"], parameter["in"], properties)
            properties[key] = self._parameter_schema(parameter, at)
            places[key] = self._place(parameter, key)
            if parameter.get("required") is True or parameter["in"] == "path":
                required.append(key)
        self._check_path(path, places, where)
        if "requestBody" in operation:
            self._add_body(operation["requestBody"], f"{where}.requestBody", properties, required, http)
        in_order = sorted(properties, key=lambda key: (key not in required, places[key]["in"] in LAST))
        parameters: Schema = {"type": "object", "properties": {key: properties[key] for key in in_order}}
        if required:
            parameters["required"] = required
        about = operation.get("summary") or operation.get("description") or item.get("summary") or ""
        return FunctionDeclaration(name, described(str(about).split("\n\n")[0]), parameters, http)

    def _made_name(self, method: str, path: str) -> str:
        """Return a name for an operation without one, such as `get_pets_by_id` for GET /pets/{id}."""
        words = re.sub(r"\{([^}]*)\}", r"by_\1", path)
        base = re.sub(r"[\W_]+", "_", f"{method}_{words}").strip("_")
        name = fresh_name(base, dict.fromkeys(self._made | self._operation_ids))
        self._made.add(name)
        return name

    @cached_property
    def _operation_ids(self) -> set[str]:
        """The names of the operations that have one."""
        items = (item for item in self._document.root["paths"].values() if isinstance(item, dict))
        operations = (operation for item in items for operation in item.values() if isinstance(operation, dict))
        return {str(operation.get("operationId")) for operation in operations}

    def _base_url(self, *owners: dict[str, Any]) -> str:
        """Return the URL of the first server that the operation, its path or the document names."""
        for owner in (*reversed(owners), self._document.root):
            servers = owner.get("servers")
            if isinstance(servers, list) and servers and isinstance(servers[0], dict):
                url = str(servers[0].get("url", ""))
                variables = servers[0].get("variables")
                for key, variable in variables.items() if isinstance(variables, dict) else ():
                    if isinstance(variable, dict):
                        url = url.replace(f"{{{key}}}", str(variable.get("default", "")))
                return url.rstrip("/")
        return ""

    def _parameters(
        self, item: dict[str, Any], operation: dict[str, Any], where: str
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the parameters of an operation; its own ones replace those of its path."""
        found: dict[tuple[str, str], tuple[dict[str, Any], str]] = {}
        for owner in (item, operation):
            given = owner.get("parameters") or []
            if not isinstance(given, list):
                raise self._document.error(f"{where}.parameters", "must be a list")
            for i, each in enumerate(given):
                at = f"{where}.parameters[{i}]"
                parameter = self._object(self._document.resolve(each, at), at)
                name, place = parameter.get("name"), parameter.get("in")
                if not isinstance(name, str) or not isinstance(place, str) or place not in STYLES:
                    raise self._document.error(at, "needs `name`, and `in`: path, query, header or cookie")
                if place == "header" and name.lower() in IGNORED_HEADERS:
                    continue
                found[name, place] = parameter, at
        yield from found.values()

    def _parameter_schema(self, parameter: dict[str, Any], where: str) -> Schema:
        content = parameter.get("content")
        if isinstance(content, dict) and content:
            media = self._object(next(iter(content.values())), f"{where}.content")
            schema = self._schemas.schema(media.get("schema", {}), f"{where}.content.schema")
        else:
            schema = self._schemas.schema(parameter.get("schema", {}), f"{where}.schema")
        about = described(parameter.get("description", ""))
        return {**schema, "description": about} if about else schema

    def _place(self, parameter: dict[str, Any], key: str) -> dict[str, Any]:
        """Return where an argument belongs in a request, and how it is written; defaults are left out."""
        place = {"in": parameter["in"]}
        if parameter["name"] != key:
            place["name"] = parameter["name"]
        if isinstance(parameter.get("content"), dict):
            return {**place, "style": "json"}
        default = STYLES[parameter["in"]]
        style = parameter.get("style", default)
        explode = parameter.get("explode", style == "form")
        if style != default:
            place["style"] = style
        return place if explode == (style == "form") else {**place, "explode": explode}

    def _check_path(self, path: str, places: dict[str, Any], where: str) -> None:
        declared = {place.get("name", key) for key, place in places.items() if place["in"] == "path"}
        for name in re.findall(r"\{([^}]*)\}", path):
            if name not in declared:
                raise self._document.error(where, f"the path has {{{name}}}, which is not one of its parameters")

    def _add_body(
        self, value: Any, where: str, properties: dict[str, Schema], required: list[str], http: dict[str, Any]
    ) -> None:
        """Add the arguments of the body of a request."""
        body = self._object(self._document.resolve(value, where), where)
        content = self._object(body.get("content") or {}, f"{where}.content")
        media_type = next((name for name in content if JSON_TYPE.match(str(name))), None)
        media_type = media_type or (FORM_TYPE if FORM_TYPE in content else None)
        if media_type is None:
            if body.get("required") is True:
                kinds = ", ".join(map(str, content)) or "nothing"
                raise self._document.error(where, f"the body is required and has no JSON form, but {kinds}")
            return
        media = self._object(content[media_type], f"{where}.content.{media_type}")
        schema = self._body_schemas.schema(media.get("schema", {}), f"{where}.content.{media_type}.schema")
        whole = self._body_schemas.expanded(schema)
        if media_type == FORM_TYPE:
            http["form"] = True
        is_required = body.get("required") is True
        if self._is_flat(whole, is_required) and not whole["properties"].keys() & properties.keys():
            properties |= whole["properties"]
            required += whole.get("required", [])
            http["arguments"] |= {name: {"in": BODY} for name in whole["properties"]}
            if is_required:
                http["body_required"] = True
            return
        key = fresh_argument(BODY, BODY, properties)
        properties[key] = schema
        http["arguments"][key] = {"in": BODY, "style": "whole"}
        required += [key] if is_required else []

    def _is_flat(self, schema: Schema, is_required: bool) -> bool:
        """Return whether the properties of a body can be arguments: those given say whether there is a body."""
        plain = schema.keys() <= FLAT_KEYWORDS
        open_ended = schema.get("additionalProperties", False) not in (False, True)
        is_object = schema.get("type", "object") == "object" and bool(schema.get("properties"))
        return plain and is_object and not open_ended and (is_required or not schema.get("required"))

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._document.error(where, "must be an object")
        return value


def fresh_argument(name: str, place: str, taken: dict[str, Schema]) -> str:
    """Return the name of an argument; one that is taken has the place of the parameter before it."""
    while name in taken:
        name = f"{place}_{name}"
    return name
