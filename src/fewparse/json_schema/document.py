"""A JSON Schema and its parts, found by keyword, by index and by `$ref`."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema import FormatChecker
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from referencing import Registry, Specification
from referencing._core import Resolver
from referencing.exceptions import NoSuchAnchor, PointerToNowhere, Unresolvable
from referencing.jsonschema import specification_with

from fewparse.errors import LimitExceeded, SchemaError, line_and_column, shortened
from fewparse.files import DuplicateKey, read_text, unique_object, value_reason
from fewparse.json_schema.positions import find_offset, pointer
from fewparse.limits import GRAMMAR_BYTES
from fewparse.text import is_unicode

Schema = dict[str, Any] | bool

DRAFTS: dict[str, type[Validator]] = {
    "http://json-schema.org/draft-04/schema": jsonschema.Draft4Validator,
    "http://json-schema.org/draft-06/schema": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-07/schema": jsonschema.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema.Draft202012Validator,
}
NEWEST = "https://json-schema.org/draft/2020-12/schema"
MAX_DEPTH = 200
MAX_VALUES = 200_000


class Document:
    """A JSON Schema with its draft, and the file and text it was read from, for messages.

    Raises `SchemaError` if it is not valid under the schema of its draft, and `LimitExceeded` if it is too large.
    """

    def __init__(self, schema: Schema, path: Path | str = "the schema", source: str | None = None) -> None:
        self.schema = schema
        self.path = path
        self._source = source
        self.uri = self._draft_uri()
        self.draft = DRAFTS[self.uri]
        self._paths = self._walk()
        self._checked: set[int] = set()
        self.check_part(schema, ())

    def error(self, path: Sequence[str | int], message: str, hint: str | None = None) -> SchemaError:
        """Return the error for a part of the schema, with its JSON pointer and, if it is known, its line."""
        shown = f"{pointer(path)}: {message}"
        at = None if self._source is None else find_offset(self._source, path)
        if at is None or self._source is None:
            return SchemaError(shown, self.path, hint=hint)
        line, column = line_and_column(self._source, at)
        return SchemaError(shown, self.path, line, column, self._source, hint)

    @property
    def root(self) -> "Subschema":
        """The whole schema."""
        specification = specification_with(self.uri)
        resource = specification.create_resource(self.schema)
        uri = resource.id() or ""
        resolver = Registry[Any]().with_resource(uri, resource).resolver(uri)
        return Subschema(self, self.schema, (), resolver, specification)

    def path_of(self, schema: Schema) -> tuple[str | int, ...]:
        """Return the path of a part of the schema, the root's if it is not known."""
        return self._paths.get(id(schema), ())

    def check_part(self, schema: Schema, path: Sequence[str | int]) -> None:
        """Raise `SchemaError` if a part of the schema is not valid under the schema of the draft."""
        if id(schema) in self._checked:
            return
        self._checked.add(id(schema))
        found = best_match(self.draft(self.draft.META_SCHEMA).iter_errors(schema))
        if found is not None:
            message = f"not a valid JSON Schema: {shortened_message(found.message)}"
            raise self.error([*path, *found.absolute_path], message)

    def _draft_uri(self) -> str:
        uri = self.schema.get("$schema", NEWEST) if isinstance(self.schema, dict) else NEWEST
        known = uri.rstrip("#") if isinstance(uri, str) else ""
        if known not in DRAFTS:
            hint = f"Known versions: {', '.join(DRAFTS)}."
            raise self.error(["$schema"], "this version of JSON Schema is not known", hint)
        return known

    def _walk(self) -> dict[int, tuple[str | int, ...]]:
        """Return the paths of all objects; raise an error if there are too many values, or odd ones."""
        paths: dict[int, tuple[str | int, ...]] = {}
        agenda: list[tuple[Any, tuple[str | int, ...]]] = [(self.schema, ())]
        count = 0
        while agenda:
            value, path = agenda.pop()
            count += 1
            if count > MAX_VALUES or len(path) > MAX_DEPTH:
                limit = (
                    f"more than {MAX_VALUES:,} values" if count > MAX_VALUES else f"deeper than {MAX_DEPTH} levels"
                )
                raise LimitExceeded(f"{self.path}: the schema is too large: {limit}", "Split it, or simplify it.")
            if isinstance(value, dict):
                paths[id(value)] = path
                agenda += [(member, (*path, key)) for key, member in value.items()]
                if isinstance(value.get("items"), bool) and "additionalItems" in value and self.uri != NEWEST:
                    message = "it has no effect beside such `items`"  # and `jsonschema` raises a TypeError
                    raise self.error([*path, "additionalItems"], message, "Remove it.")
                if not all(map(is_unicode, value)):
                    raise self.error(path, "a key contains a lone surrogate")
            elif isinstance(value, list):
                agenda += [(member, (*path, i)) for i, member in enumerate(value)]
            elif isinstance(value, str) and not is_unicode(value):
                raise self.error(path, "the text contains a lone surrogate")
            elif isinstance(value, float) and value in (float("inf"), -float("inf")):
                raise self.error(path, "the number is too large")
        return paths


@dataclass(frozen=True)
class Subschema:
    """A part of a schema. `path` leads to it from the root; `resolver` knows its base URI."""

    document: Document
    schema: Schema
    path: tuple[str | int, ...]
    resolver: "Resolver[Any]"
    specification: "Specification[Any]"

    @property
    def ref_only(self) -> bool:
        """Whether other keywords have no effect beside a `$ref`, as in draft 7 and before."""
        return (
            "$recursiveRef" not in self.document.draft.VALIDATORS
            and "$dynamicRef" not in self.document.draft.VALIDATORS
        )

    def child(self, *keys: str | int) -> "Subschema":
        """Return the subschema at some keys below this one."""
        schema: Any = self.schema
        for key in keys:
            schema = schema[key]
        if (
            isinstance(schema, dict)
            and str(schema.get("$schema", self.document.uri)).rstrip("#") != self.document.uri
        ):
            raise self.fail([*keys, "$schema"], "a part of the schema has another version of JSON Schema")
        resolver = self.resolver
        if isinstance(schema, dict):
            resolver = resolver.in_subresource(self.specification.create_resource(schema))
        return replace(self, schema=schema, path=(*self.path, *keys), resolver=resolver)

    def children(self, keyword: str) -> list["Subschema"]:
        """Return the subschemas in the list of a keyword."""
        assert isinstance(self.schema, dict)
        return [self.child(keyword, i) for i in range(len(self.schema.get(keyword, ())))]

    def named(self, keyword: str) -> dict[str, "Subschema"]:
        """Return the subschemas in the object of a keyword."""
        assert isinstance(self.schema, dict)
        return {name: self.child(keyword, name) for name in self.schema.get(keyword, ())}

    def referenced(self, keyword: str = "$ref") -> "Subschema":
        """Return the subschema that a reference names; raise `SchemaError` if there is none in the document."""
        assert isinstance(self.schema, dict)
        reference = self.schema[keyword]
        try:
            found = self.resolver.lookup(reference)
        except (PointerToNowhere, NoSuchAnchor):
            raise self.fail([keyword], f"the schema has no part {shortened(reference)}") from None
        except Unresolvable:
            hint = "Nothing is downloaded: copy the other schema into this one, under $defs."
            raise self.fail([keyword], f"a reference to another schema: {shortened(reference)}", hint) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self.fail([keyword], f"the reference {shortened(reference)} cannot be read") from None
        if not isinstance(found.contents, dict | bool):
            raise self.fail([keyword], f"{shortened(reference)} is not a schema")
        path = self.document.path_of(found.contents)
        self.document.check_part(found.contents, path)
        return replace(self, schema=found.contents, path=path, resolver=found.resolver)

    def validator(self, formats: FormatChecker | None = None) -> Validator:
        """Return a validator for this part, which checks formats if a checker is given, and downloads nothing."""
        whole: Any = self.document.draft(self.document.schema, registry=Registry(), format_checker=formats)
        part: Validator = whole.evolve(schema=self.schema, _resolver=self.resolver)
        return part

    def fail(self, keys: Sequence[str | int], message: str, hint: str | None = None) -> SchemaError:
        """Return the error for the part of the schema at some keys below this one."""
        return self.document.error([*self.path, *keys], message, hint)


def read_schema(path: Path) -> Document:
    """Return the schema of a file: a JSON object, true or false."""
    return parse_schema(read_text(path, SchemaError, GRAMMAR_BYTES).removeprefix("\ufeff"), path)


def parse_schema(source: str, path: Path | str) -> Document:
    """Return the schema of a JSON text; `path` is shown in messages."""
    try:
        value = json.loads(source, object_pairs_hook=unique_object, parse_constant=not_a_number)
    except json.JSONDecodeError as error:
        raise SchemaError(f"not valid JSON: {error.msg}", path, error.lineno, error.colno, source) from None
    except DuplicateKey as error:
        raise SchemaError(f"the key {error.args[0]!r} occurs twice in an object", path) from None
    except RecursionError:
        raise SchemaError("its values are nested too deeply", path) from None
    except ValueError as error:
        raise SchemaError(f"not readable JSON: {value_reason(error)}", path) from None
    if not isinstance(value, dict | bool):
        raise SchemaError("a JSON Schema is an object, true or false", path, 1, 1, source)
    return Document(value, path, source)


def not_a_number(name: str) -> Any:
    """Raise an error for NaN and Infinity, which Python reads although they are not JSON."""
    raise ValueError(f"{name} is not a number of JSON")


def finite(text: str) -> float:
    """Return a number; raise an error for one that Python reads as infinity."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {shortened_message(text, 20)} is too large")
    return value


NUMBERS: dict[str, Any] = {"parse_constant": not_a_number, "parse_float": finite}
"""How the values of programs are read, so that all of their numbers can be written as JSON again."""


def shortened_message(message: str, limit: int = 200) -> str:
    """Return a message of another library, shortened if it shows a large value."""
    return message if len(message) <= limit else f"{message[:limit]}..."
