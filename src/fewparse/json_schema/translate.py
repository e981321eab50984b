"""Rewrite a JSON Schema of any draft for the engine, which enforces a part of draft 2020-12.

Every keyword is rewritten into an equivalent combination of keywords that the engine enforces exactly, or refused
with its path; only annotations are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from fewparse.errors import LimitExceeded
from fewparse.json_schema.assertions import ASSERTIONS, AssertionWriter
from fewparse.json_schema.disjoint import Disjointness
from fewparse.json_schema.document import DRAFTS, NEWEST, Document, Subschema
from fewparse.json_schema.emitted import EXAMPLES, STRICTER, Emitted, conjunction, disjunction
from fewparse.json_schema.formats import format_checker
from fewparse.json_schema.loops import check_loops
from fewparse.json_schema.negation import negation
from fewparse.json_schema.numbers import NumberError, constant, has_common_multiple
from fewparse.json_schema.patterns import UNWRITABLE, to_engine
from fewparse.json_schema.pruning import Pruner, walk
from fewparse.json_schema.types import ANY_TYPE, Types, common, type_of, types_of
from fewparse.json_schema.unevaluated import DependsOnValue, evaluated_items, evaluated_properties

KNOWN_KEYWORDS = frozenset(keyword for draft in DRAFTS.values() for keyword in draft.VALIDATORS)
"""The keywords that restrict values in some draft."""
WITHOUT_EFFECT = frozenset(("additionalItems", "exclusiveMinimum", "exclusiveMaximum"))
"""Keywords that are not checked on their own in some drafts, but together with `items` or `minimum`, if at all."""
FOREIGN = frozenset(("const", "if", "propertyNames", "dependencies", "dependentRequired", "dependentSchemas"))
"""Keywords that are enforced in all drafts, even in those that do not have them."""
MAX_EMITTED = 100_000
MAX_REFERENCES = 20


@dataclass(frozen=True)
class OneOf:
    """A `oneOf` that is written as `anyOf`, which is only right if no two branches are valid for one value."""

    part: Subschema
    types: Types
    emitted: dict[str, Any]
    branches: Sequence[tuple[Subschema, Emitted]]


@dataclass(frozen=True)
class Translation:
    """A schema for the engine: its definitions, and the part of the document that each schema in it is from."""

    root: Subschema
    schema: Emitted
    definitions: dict[str, Emitted]
    origins: dict[int, Subschema]


def translate(document: Document) -> Translation:
    """Return a schema for the engine that is equivalent to a document.

    Raises `SchemaError` with the path of a keyword that cannot be enforced, and `LimitExceeded` for a schema that
    grows too large.
    """
    translator = Translator(document)
    try:
        check_loops(document)
        root = translator.positive(document.root)
        translator.resolve_one_ofs()
        translator.check_divisors(root)
        root = Pruner(translator.definitions).pruned(root)
    except RecursionError:
        raise LimitExceeded(f"{document.path}: the schema is nested too deeply") from None
    if root is False:
        raise document.error([], "no JSON text is valid under this schema", "Check its bounds and references.")
    return Translation(document.root, root, translator.definitions, translator.origins)


class Translator:
    """Rewrites the parts of a document; `definitions` are the parts that references name."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.definitions: dict[str, Emitted] = {}
        self.origins: dict[int, Subschema] = {}
        self.one_ofs: list[OneOf] = []
        self._names: dict[tuple[int, bool, bool], str] = {}
        self.partial = False
        """Whether negations may leave out values: then those that are kept are right, but not complete."""
        self.left_out = 0
        """How often a negation has left out values."""
        self._incomplete: set[str] = set()
        self._keep: list[Emitted] = []

    def positive(self, part: Subschema, types: Types = ANY_TYPE) -> Emitted:
        """Return a schema for the values of some types that are valid under a part of the document."""
        schema = part.schema
        if isinstance(schema, bool):
            return schema
        foreign = self._foreign_keywords(part, FOREIGN)
        if "$ref" in schema and part.ref_only:
            return self.reference(part, "$ref")
        types = common(types, types_of(part))
        if not types:
            return False
        if ("enum" in schema or "const" in schema) and not {*foreign} - {"const"}:
            return self._noted(self._values(part, types), part, stricter=bool(foreign))
        written = False
        emitted: list[Emitted] = []
        for keyword in schema:
            if keyword not in ASSERTIONS:
                emitted += self._applicator(keyword, part, types)
            elif not written and (keyword == "properties" or "properties" not in schema):
                emitted += AssertionWriter(part, types, self.positive).write()
                written = True
        return self._noted(conjunction(emitted), part, stricter=bool(foreign))

    def negative(self, part: Subschema, types: Types = ANY_TYPE) -> Emitted:
        """Return a schema for the values of some types that are not valid under a part of the document."""
        if isinstance(part.schema, bool):
            return not part.schema
        self._foreign_keywords(part, frozenset())
        if "$ref" in part.schema and part.ref_only:
            return self.reference(part, "$ref", negated=True)
        before = self.left_out
        emitted = negation(self, part, types)
        return self._noted(emitted, part, stricter=self.left_out > before)

    def reference(self, part: Subschema, keyword: str, negated: bool = False) -> Emitted:
        """Return a reference to the definition of what a part refers to, or of its negation."""
        target = part.referenced(keyword)
        if isinstance(target.schema, bool):
            return target.schema is not negated
        key = id(target.schema), negated, negated and self.partial
        if key not in self._names:
            name = self._names[key] = str(len(self._names))
            self.definitions[name] = {"$ref": f"#/$defs/{name}"}
            before = self.left_out
            self.definitions[name] = self.negative(target) if negated else self.positive(target)
            if self.left_out > before:
                self._incomplete.add(name)
        name = self._names[key]
        self.left_out += name in self._incomplete
        found = self.definitions[name]
        return found if isinstance(found, bool) else self._noted({"$ref": f"#/$defs/{name}"}, part)

    def resolve_one_ofs(self) -> None:
        """Exclude, in each `oneOf`, the values for which several branches are valid.

        Where the negation of a branch cannot be enforced completely, values are excluded for which no other branch
        is valid, so that what is left is right.
        """
        disjointness = Disjointness(self.definitions)
        self.partial = True
        while self.one_ofs:
            one_of = self.one_ofs.pop()
            before = self.left_out
            exclusive: list[Emitted] = []
            for i, (_, emitted) in enumerate(one_of.branches):
                others = [*one_of.branches[:i], *one_of.branches[i + 1 :]]
                overlapping = [part for part, other in others if not disjointness.of(emitted, other)]
                alone = conjunction([emitted, *(self.negative(part, one_of.types) for part in overlapping)])
                if alone is False and self.left_out > before:
                    message = f"the branch {i} and another one may both be valid: that cannot be excluded"
                    raise one_of.part.fail(["oneOf", i], message, "Write branches that exclude each other.")
                exclusive.append(alone)
            one_of.emitted["anyOf"] = exclusive
            if self.left_out > before:
                one_of.emitted[STRICTER] = True

    def check_divisors(self, root: Emitted) -> None:
        """Raise `SchemaError` for divisors whose common multiples are too large for the engine."""
        for schema in walk(root, self.definitions):
            members = [
                {each["multipleOf"] for each in walk(member, self.definitions) if "multipleOf" in each}
                for member in schema.get("allOf", ())
            ]
            for one, other in combinations(members, 2):
                for pair in product(one, other):
                    if len(set(pair)) > 1 and not has_common_multiple(*pair):
                        part = self.origins.get(id(schema), self.document.root)
                        raise part.fail([], f"multiples of both {pair[0]} and {pair[1]} cannot be enforced")

    @staticmethod
    def _foreign_keywords(part: Subschema, allowed: frozenset[str]) -> list[str]:
        """Return the keywords that only other versions have; raise `SchemaError` for one that is not allowed."""
        assert isinstance(part.schema, dict)
        known = part.document.draft.VALIDATORS
        found = [keyword for keyword in part.schema if keyword in KNOWN_KEYWORDS and keyword not in known]
        for keyword in found:
            if keyword not in allowed and keyword not in WITHOUT_EFFECT:
                hint = "Name the version that has it in $schema."
                raise part.fail([keyword], f"the version {part.document.uri} has no `{keyword}`", hint)
        return [keyword for keyword in found if keyword in allowed]

    def _noted(self, emitted: Emitted, part: Subschema, stricter: bool = False) -> Emitted:
        """Note which part of the document a schema for the engine is from, and mark it if it is stricter."""
        if isinstance(emitted, dict):
            if stricter:
                emitted[STRICTER] = True
            if id(emitted) not in self.origins:
                self._keep.append(emitted)  # so that no other schema gets its identity
                self.origins[id(emitted)] = part
            if len(self._keep) > MAX_EMITTED:
                message = f"{self.document.path}: the schema grows to more than {MAX_EMITTED:,} parts"
                raise LimitExceeded(message, "Simplify it: `oneOf`, `not` and `if` multiply its parts.")
        return emitted

    def _applicator(self, keyword: str, part: Subschema, types: Types) -> Iterator[Emitted]:
        """Yield schemas that together say what a keyword says that may concern values of all types."""
        assert isinstance(part.schema, dict)
        if keyword == "allOf":
            yield from (self.positive(child, types) for child in part.children("allOf"))
        elif keyword == "anyOf":
            yield disjunction([self.positive(child, types) for child in part.children("anyOf")])
        elif keyword == "oneOf":
            yield self._one_of(part, types)
        elif keyword == "not":
            yield self.negative(part.child("not"), types)
        elif keyword == "if":
            yield from self._conditional(part, types)
        elif keyword in ("enum", "const"):
            yield self._values(part, types)
        elif keyword == "$ref":
            yield self.reference(part, "$ref")
        elif keyword in ("$dynamicRef", "$recursiveRef"):
            hint = "Write a $ref to the part that is meant."
            raise part.fail([keyword], f"`{keyword}` cannot be enforced", hint)
        elif keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            yield from self._dependencies(part, keyword, types)
        elif keyword == "propertyNames":
            yield self._property_names(part)
        elif keyword in ("unevaluatedProperties", "unevaluatedItems"):
            yield self._unevaluated(part, keyword)

    def _one_of(self, part: Subschema, types: Types) -> Emitted:
        branches = [(child, self.positive(child, types)) for child in part.children("oneOf")]
        possible = [(child, emitted) for child, emitted in branches if emitted is not False]
        if len(possible) < 2:
            return possible[0][1] if possible else False
        found = {"anyOf": [emitted for _, emitted in possible]}
        self.one_ofs.append(OneOf(part, types, found, possible))
        return found

    def _conditional(self, part: Subschema, types: Types) -> Iterator[Emitted]:
        assert isinstance(part.schema, dict)
        if "then" in part.schema or "else" in part.schema:
            condition = part.child("if")
            then = self.positive(part.child("then"), types) if "then" in part.schema else True
            otherwise = self.positive(part.child("else"), types) if "else" in part.schema else True
            yield disjunction(
                [
                    conjunction([self.positive(condition, types), then]),
                    conjunction([self.negative(condition, types), otherwise]),
                ]
            )

    def _values(self, part: Subschema, types: Types) -> Emitted:
        """Return a schema for the values of `enum` and `const` that are valid under the whole part."""
        assert isinstance(part.schema, dict)
        keyword = "enum" if "enum" in part.schema else "const"
        values = part.schema["enum"] if keyword == "enum" else [part.schema["const"]]
        possible = [value for value in values if common(frozenset([type_of(value)]), types)]
        without_formats, with_formats = part.validator(), part.validator(format_checker())
        valid = [value for value in possible if without_formats.is_valid(value)]
        try:
            written = [writable(value) for value in valid if with_formats.is_valid(value)]
        except NumberError as error:
            raise part.fail([keyword], error.message) from None
        return {"enum": written} | ({STRICTER: True} if len(written) < len(valid) else {}) if written else False

    def _dependencies(self, part: Subschema, keyword: str, types: Types) -> Iterator[Emitted]:
        assert isinstance(part.schema, dict)
        for name, needed in part.schema[keyword].items():
            if isinstance(needed, list):
                demanded: Emitted = {"required": needed} if needed else True
            else:
                demanded = self.positive(part.child(keyword, name), types)
            if demanded is not True and "object" in types:
                present = conjunction([{"type": "object", "required": [name]}, demanded])
                yield disjunction([{"properties": {name: False}}, present])

    def _unevaluated(self, part: Subschema, keyword: str) -> Emitted:
        rest = self.positive(part.child(keyword))
        try:
            if keyword == "unevaluatedItems":
                if part.document.uri != NEWEST:
                    raise DependsOnValue
                count = evaluated_items(part)
                return True if count is None else {"prefixItems": [True] * count, "items": rest}
            found = evaluated_properties(part)
        except DependsOnValue:
            message = f"`{keyword}` cannot be enforced beside keywords that look at some values only"
            raise part.fail([keyword], message, "Use additionalProperties or items.") from None
        if found is None:
            return True
        patterns = {to_engine(pattern): True for pattern in found[1]}
        return {
            "properties": dict.fromkeys(found[0], True),
            "patternProperties": patterns,
            "additionalProperties": rest,
        }

    def _property_names(self, part: Subschema) -> Emitted:
        names = self.positive(part.child("propertyNames"), frozenset(["string"]))
        for _ in range(MAX_REFERENCES):
            if isinstance(names, dict) and names.keys() == {"$ref"}:
                names = self.definitions[names["$ref"].rpartition("/")[2]]
        if names is True or names == {"type": "string"}:
            return True
        if names is False:
            return {"maxProperties": 0}
        keywords = names.keys() - {"type", STRICTER, EXAMPLES}
        if keywords == {"enum"}:
            allowed = dict.fromkeys(filter(lambda name: isinstance(name, str), names["enum"]), True)
            return {"properties": allowed, "additionalProperties": False}
        if keywords == {"pattern"}:
            return {"patternProperties": {names["pattern"]: True}, "additionalProperties": False}
        if keywords <= {"minLength", "maxLength"}:
            pattern = f"^(?s:.{{{names.get('minLength', 0)},{names.get('maxLength', '')}}})$"
            return {"patternProperties": {pattern: True}, "additionalProperties": False}
        raise part.fail(["propertyNames"], "this condition on names cannot be enforced")


def writable(value: Any) -> Any:
    """Return a constant as the engine reads it exactly; raise `NumberError` if that is not possible."""
    if isinstance(value, dict):
        return {key: writable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [writable(member) for member in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return constant(value)
    if isinstance(value, str) and any(char in UNWRITABLE for char in value):
        raise NumberError("", "a text with control characters cannot be enforced")
    return value
