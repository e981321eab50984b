"""Normalise the JSON Schemas of tools and OpenAPI documents to one dialect, draft 2020-12.

Types such as `dict` and `float` and the keywords of OpenAPI 3.0 and of older drafts are rewritten. Annotations
other than `description` and `default` are dropped. `allOf` is merged where possible. Referenced schemas are
collected as definitions. All other keywords are kept: whether they can be enforced depends on the notation.
"""

import re
from collections.abc import Iterable
from typing import Any

from fewparse.domains.calls.merging import merged
from fewparse.domains.calls.references import SpecDocument
from fewparse.errors import LimitExceeded, shortened
from fewparse.grammar.rules import fresh_name
from fewparse.json_schema.formats import is_annotation
from fewparse.json_schema.translate import KNOWN_KEYWORDS
from fewparse.text import one_line

Schema = dict[str, Any]

TYPES = {
    **{name: name for name in ("string", "number", "integer", "boolean", "null", "array", "object")},
    **dict.fromkeys(("dict", "hashmap", "map"), "object"),
    **dict.fromkeys(("list", "tuple", "arraylist"), "array"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("str", "char"), "string"),
    "bool": "boolean",
    "none": "null",
}
ANY_TYPE = "any"
KEPT_ANNOTATIONS = ("description", "default")
KEPT = KNOWN_KEYWORDS - {"$ref", "$dynamicRef", "$recursiveRef"} | set(KEPT_ANNOTATIONS)
"""Keywords with a meaning; all others are annotations, and dropped. References are handled apart."""
ONE_SCHEMA = (
    *("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "contains"),
    *("not", "if", "then", "else"),
)
SCHEMAS_BY_NAME = ("properties", "patternProperties", "dependentSchemas")
LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
WITHOUT_EFFECT = {"uniqueItems": False, "unevaluatedProperties": True, "unevaluatedItems": True}
"""Values of keywords with which all values are valid."""
REFERENCE = "#/$defs/"
MAX_SCHEMAS = 500_000


class Normaliser:
    """Normalises schemas of one document; those that are referenced are added to `definitions`, by name.

    With `writing`, properties that are `readOnly` are left out, as in the body of a request.
    """

    def __init__(
        self, document: SpecDocument, definitions: dict[str, Schema] | None = None, writing: bool = False
    ) -> None:
        self._document = document
        self._writing = writing
        self._names: dict[str, str] = {}
        self._count = 0
        self.definitions = {} if definitions is None else definitions

    def schema(self, value: Any, where: str) -> Schema:
        """Return a normalised schema; `where` is its place in the document, for messages."""
        self._count += 1
        if self._count > MAX_SCHEMAS:
            raise LimitExceeded(f"{self._document.path}: there are more than {MAX_SCHEMAS:,} schemas")
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        if not isinstance(value, dict):
            raise self._document.error(where, "a schema must be an object")
        own = self._keywords(value, where)
        parts = own.pop("allOf", [])
        if "$ref" in value:
            parts = [self._reference(value["$ref"], where), *parts]
        combined = self._combined([*parts, own])
        return with_null(combined) if value.get("nullable") is True else combined

    def _reference(self, reference: Any, where: str) -> Schema:
        found = self._document.find(reference, where)
        if reference not in self._names:
            self._document.resolve(found, where)  # a circle of references is an error
            last = re.sub(r"[^A-Za-z0-9_.-]", "_", reference.rpartition("/")[2]) or "root"
            name = self._names[reference] = fresh_name(last, self.definitions)
            self.definitions[name] = {}  # reserves the name
            found = self.schema(found, reference.removeprefix("#/").replace("/", "."))
            self.definitions[name] = found
        return {"$ref": REFERENCE + self._names[reference]}

    def _combined(self, parts: Iterable[Schema]) -> Schema:
        """Return the conjunction of schemas, merged into one if possible."""
        found = [part for part in parts if part]
        asserting = [part for part in found if not part.keys() <= set(KEPT_ANNOTATIONS)]
        annotations = {key: part[key] for part in found for key in KEPT_ANNOTATIONS if key in part}
        if len(asserting) <= 1:
            return {**(asserting[0] if asserting else {}), **annotations}
        whole = merged([self.expanded(part) for part in asserting])
        return {**({"allOf": asserting} if whole is None else whole), **annotations}

    def expanded(self, part: Schema) -> Schema:
        """Return the definition that a schema refers to; the schema itself while that is being read."""
        while "$ref" in part and (definition := self.definitions[part["$ref"].removeprefix(REFERENCE)]):
            part = {**definition, **{key: part[key] for key in KEPT_ANNOTATIONS if key in part}}
        return part

    def _keywords(self, value: dict[str, Any], where: str) -> Schema:
        """Return the keywords of a schema other than `$ref` and `nullable`."""
        own: Schema = {}
        for key, content in value.items():
            at = f"{where}.{key}"
            if key not in KEPT:
                continue
            if key in SCHEMAS_BY_NAME:
                own[key] = {name: self.schema(each, f"{at}.{name}") for name, each in self._members(content, at)}
            elif key in LISTS_OF_SCHEMAS or (key == "items" and isinstance(content, list)):
                if not isinstance(content, list):
                    raise self._document.error(at, "must be a list of schemas")
                new = "prefixItems" if key == "items" else key
                own[new] = [self.schema(each, f"{at}[{i}]") for i, each in enumerate(content)]
            elif key in ONE_SCHEMA or key == "items":
                own[key] = content if isinstance(content, bool) else self.schema(content, at)
            else:
                own[key] = content
        self._rewrite(own, value, where)
        return own

    def _members(self, content: Any, where: str) -> list[tuple[str, Any]]:
        if not isinstance(content, dict):
            raise self._document.error(where, "must be an object of schemas")
        members = [(str(name), each) for name, each in content.items()]
        if self._writing:
            members = [(name, each) for name, each in members if not self._is_read_only(each, where)]
        return members

    def _is_read_only(self, value: Any, where: str) -> bool:
        found = self._document.resolve(value, where)
        return isinstance(found, dict) and found.get("readOnly") is True

    def _rewrite(self, own: Schema, value: dict[str, Any], where: str) -> None:
        """Rewrite keywords of other dialects, in place."""
        if "type" in own:
            names = own.pop("type")
            types = [self._type(name, where) for name in (names if isinstance(names, list) else [names])]
            if ANY_TYPE not in types:
                own["type"] = types[0] if len(types) == 1 else list(dict.fromkeys(types))
        if is_annotation(str(own.get("format"))):
            own.pop("format", None)
        if not isinstance(own.get("enum", []), list):
            raise self._document.error(f"{where}.enum", "must be a list of values")
        if "const" in own:
            own["enum"] = [own.pop("const")]
        for excluded, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(own.get(excluded), bool) and own.pop(excluded) and bound in own:
                own[excluded] = own.pop(bound)
        if isinstance(value.get("items"), list) and "additionalItems" in own:
            rest = own["additionalItems"]
            own["items"] = rest if isinstance(rest, bool) else self.schema(rest, f"{where}.additionalItems")
        own.pop("additionalItems", None)  # without a list of schemas in `items`, it says nothing
        for keyword, trivial in WITHOUT_EFFECT.items():
            if own.get(keyword) is trivial:
                del own[keyword]
        if text := described(own.pop("description", "")):
            own["description"] = text
        self._require(own, value, where)

    def _type(self, name: Any, where: str) -> str:
        known = str(name).lower()
        if known == ANY_TYPE:
            return ANY_TYPE
        if not isinstance(name, str) or known not in TYPES:
            raise self._document.error(where, f"unknown type {shortened(str(name))}")
        return TYPES[known]

    def _require(self, own: Schema, value: dict[str, Any], where: str) -> None:
        """Set `required`; every required property is declared, and one that is left out is not required."""
        required = own.pop("required", [])
        if isinstance(required, bool):  # draft 3: the parent has looked at it
            required = []
        if not (isinstance(required, list) and all(isinstance(name, str) for name in required)):
            raise self._document.error(f"{where}.required", "must be a list of names")
        declared = value.get("properties", {})
        flagged = [
            name for name, each in declared.items() if isinstance(each, dict) and each.get("required") is True
        ]
        kept = own.get("properties", {})
        names = [name for name in dict.fromkeys([*required, *flagged]) if name in kept or name not in declared]
        if names:
            own["required"] = names
            own["properties"] = kept | {name: {} for name in names if name not in kept}


def described(text: Any) -> str:
    """Return a description on one line; empty if it is not a text."""
    return one_line(text) if isinstance(text, str) else ""


def with_null(schema: Schema) -> Schema:
    """Return a schema that also accepts null."""
    if "$ref" in schema or not {"type", "enum"} & schema.keys():
        return {"anyOf": [schema, {"type": "null"}]} if schema else schema
    types = schema.get("type")
    names = [types] if isinstance(types, str) else types
    wider = {**schema} if names is None else {**schema, "type": list(dict.fromkeys([*names, "null"]))}
    if "enum" in wider and None not in wider["enum"]:
        wider["enum"] = [*wider["enum"], None]
    return wider
