"""Rewrite the negation of a schema without `not`: negations are pushed down to single keywords."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

from fewparse.json_schema.assertions import count
from fewparse.json_schema.complement import complement
from fewparse.json_schema.document import Subschema
from fewparse.json_schema.emitted import Emitted, conjunction, disjunction, of_types
from fewparse.json_schema.formats import is_annotation
from fewparse.json_schema.numbers import Bounds, NumberError, bounds_of, exact, integer_keywords, number_keywords
from fewparse.json_schema.patterns import PatternError, none_of
from fewparse.json_schema.types import ANY_TYPE, NUMERIC, Types, type_of, types_named

if TYPE_CHECKING:
    from fewparse.json_schema.translate import Translator

MAX_DECLARED = 5
OPPOSITES = {
    "minLength": ("string", "maxLength"),
    "maxLength": ("string", "minLength"),
    "minItems": ("array", "maxItems"),
    "maxItems": ("array", "minItems"),
    "minProperties": ("object", "maxProperties"),
    "maxProperties": ("object", "minProperties"),
}
NOT_NEGATED = {
    "multipleOf": "number",
    "format": "string",
    "items": "array",
    "additionalItems": "array",
    "contains": "array",
    "uniqueItems": "array",
    "unevaluatedItems": "array",
    "patternProperties": "object",
    "dependencies": "object",
    "unevaluatedProperties": "object",
}
"""Keywords whose negation the engine cannot enforce, with the type of the values that they concern."""


def negation(translator: "Translator", part: Subschema, types: Types) -> Emitted:
    """Return a schema for the values of some types that are not valid under a part of a document."""
    assert isinstance(part.schema, dict)
    writer = NegationWriter(translator, part, types)
    return disjunction([emitted for keyword in part.schema for emitted in writer.violations(keyword)])


class NegationWriter:
    """Writes, for each keyword of a part, schemas for the values that violate it."""

    def __init__(self, translator: "Translator", part: Subschema, types: Types) -> None:
        assert isinstance(part.schema, dict)
        self._translator = translator
        self._part = part
        self._schema = part.schema
        self._types = types
        self._writers: dict[str, Callable[[], Iterator[Emitted]]] = {
            "type": self._type,
            "enum": lambda: self._other_values("enum", self._schema["enum"]),
            "const": lambda: self._other_values("const", [self._schema["const"]]),
            "pattern": self._pattern,
            "required": self._required,
            "properties": self._properties,
            "additionalProperties": self._additional_properties,
            "propertyNames": self._property_names,
            "prefixItems": self._prefix_items,
            "dependentRequired": self._dependent_required,
            "dependentSchemas": self._dependent_schemas,
            "allOf": self._all_of,
            "anyOf": self._any_of,
            "oneOf": self._one_of,
            "not": self._not,
            "if": self._if,
            "$ref": self._ref,
        }

    def violations(self, keyword: str) -> Iterator[Emitted]:
        """Yield schemas; a value violates the keyword if it is valid under one of them."""
        if keyword in self._writers:
            yield from self._writers[keyword]()
        elif keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            yield from self._outside(keyword)
        elif keyword in OPPOSITES:
            yield from self._size(keyword, *OPPOSITES[keyword])
        elif keyword in self._part.document.draft.VALIDATORS and not self._is_trivial(keyword):
            self._leave_out(keyword, f"the negation of `{keyword}` cannot be enforced")

    def _leave_out(self, keyword: str, message: str) -> None:
        """Leave out the values that violate a keyword, or raise `SchemaError` if none may be left out."""
        if not self._translator.partial:
            raise self._part.fail([keyword], message)
        self._translator.left_out += 1

    def _is_trivial(self, keyword: str) -> bool:
        """Return whether a keyword allows all values of the types."""
        kind, value = NOT_NEGATED.get(keyword), self._schema[keyword]
        if kind is not None and not self._types & (NUMERIC if kind == "number" else {kind}):
            return True
        if keyword == "format":
            return is_annotation(value)
        if keyword in ("contains", "uniqueItems"):
            return keyword == "uniqueItems" and value is False
        return value is True or value == {}

    def _type(self) -> Iterator[Emitted]:
        named = types_named(self._schema["type"])
        if "integer" in named and "number" in self._types:
            self._leave_out("type", "that a number is not an integer cannot be enforced")
        yield self._of_other_types(named)

    def _of_other_types(self, types: Types) -> Emitted:
        left = self._types - types - (NUMERIC if types & NUMERIC else frozenset())
        return of_types(left) if left else False

    def _other_values(self, keyword: str, values: list[Any]) -> Iterator[Emitted]:
        """Yield schemas for all values of the types except some."""
        concerned = types_named([type_of(value) for value in values])
        yield self._of_other_types(concerned)
        present = concerned & self._types
        if "boolean" in present:
            yield from ({"enum": [value]} for value in (True, False) if not any(v is value for v in values))
        if "string" in present:
            yield of_types(["string"], pattern=none_of([value for value in values if isinstance(value, str)]))
        if concerned & NUMERIC and self._types & NUMERIC:
            numbers = sorted({exact(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)})
            for low, high in zip([None, *numbers], [*numbers, None], strict=True):
                yield self._between(keyword, Bounds(low, True, high, True))
        if "array" in present:
            arrays = [value for value in values if isinstance(value, list)]
            yield conjunction([disjunction([*self._other_arrays(keyword, array)]) for array in arrays])
        if "object" in present:
            objects = [value for value in values if isinstance(value, dict)]
            yield conjunction([disjunction([*self._other_objects(keyword, each)]) for each in objects])

    def _other_arrays(self, keyword: str, array: list[Any]) -> Iterator[Emitted]:
        if array:
            yield of_types(["array"], maxItems=len(array) - 1)
        yield of_types(["array"], minItems=len(array) + 1)
        for i, item in enumerate(array):
            yield of_types(["array"], minItems=i + 1, prefixItems=[*[True] * i, self._other_than(keyword, item)])

    def _other_objects(self, keyword: str, each: dict[str, Any]) -> Iterator[Emitted]:
        for name, member in each.items():
            yield of_types(["object"], properties={name: False})
            yield of_types(["object"], properties={name: self._other_than(keyword, member)}, required=[name])
        known = dict.fromkeys(each, True)
        yield of_types(["object"], properties=known, required=list(each), minProperties=len(each) + 1)

    def _other_than(self, keyword: str, value: Any) -> Emitted:
        writer = NegationWriter(self._translator, self._part, ANY_TYPE)
        return disjunction([*writer._other_values(keyword, [value])])

    def _between(self, keyword: str, bounds: Bounds) -> Emitted:
        try:
            keywords = integer_keywords(bounds, 1) if "integer" in self._types else number_keywords(bounds)
        except NumberError as error:
            raise self._part.fail([keyword], error.message) from None
        return False if keywords is None else of_types(self._types & NUMERIC, **keywords)

    def _outside(self, keyword: str) -> Iterator[Emitted]:
        if isinstance(self._schema[keyword], bool) or not self._types & NUMERIC:  # draft 4 has booleans
            return
        exclusive = f"exclusive{keyword.capitalize()}"
        flag = {exclusive: True} if self._schema.get(exclusive) is True else {}
        bounds = bounds_of({keyword: self._schema[keyword], **flag})
        if bounds.low is not None:
            yield self._between(keyword, Bounds(high=bounds.low, high_excluded=not bounds.low_excluded))
        if bounds.high is not None:
            yield self._between(keyword, Bounds(low=bounds.high, low_excluded=not bounds.high_excluded))

    def _pattern(self) -> Iterator[Emitted]:
        if "string" in self._types:
            try:
                other = complement(self._schema["pattern"])
            except PatternError as error:
                self._leave_out("pattern", f"the negation of the pattern: {error.message}")
            else:
                yield other is not None and of_types(["string"], pattern=other)

    def _size(self, keyword: str, kind: str, opposite: str) -> Iterator[Emitted]:
        """Yield the schema of values that have too few or too many characters, items or properties."""
        limit = count(self._schema, keyword) or 0
        other = limit - 1 if keyword.startswith("min") else limit + 1
        if kind in self._types and other >= 0:
            yield of_types([kind], **{opposite: other})

    def _required(self) -> Iterator[Emitted]:
        if "object" in self._types:
            yield from (of_types(["object"], properties={name: False}) for name in self._schema["required"])

    def _properties(self) -> Iterator[Emitted]:
        for name, child in self._part.named("properties").items() if "object" in self._types else ():
            wrong = self._translator.negative(child)
            yield wrong and of_types(["object"], properties={name: wrong}, required=[name])

    def _additional_properties(self) -> Iterator[Emitted]:
        """Yield schemas of objects with a property that is not declared, if none is allowed."""
        allowed, declared = self._schema["additionalProperties"], [*self._schema.get("properties", ())]
        if "object" not in self._types or allowed is True or allowed == {}:
            return
        if allowed is not False or self._schema.get("patternProperties") or len(declared) > MAX_DECLARED:
            self._leave_out("additionalProperties", "the negation of `additionalProperties` cannot be enforced")
            return
        for size in range(len(declared) + 1):
            for present in combinations(declared, size):
                properties = {name: name in present for name in declared}
                yield of_types(["object"], properties=properties, required=[*present], minProperties=size + 1)

    def _property_names(self) -> Iterator[Emitted]:
        """Yield schemas of objects with a property that has a wrong name."""
        wrong = self._translator.negative(self._part.child("propertyNames"), frozenset(["string"]))
        if "object" not in self._types or wrong is False:
            return
        if wrong is True:
            yield of_types(["object"], minProperties=1)
        elif wrong.keys() == {"enum"}:
            yield from (of_types(["object"], required=[name]) for name in wrong["enum"])
        else:
            self._leave_out("propertyNames", "the negation of `propertyNames` cannot be enforced")

    def _prefix_items(self) -> Iterator[Emitted]:
        for i, child in enumerate(self._part.children("prefixItems") if "array" in self._types else ()):
            wrong = self._translator.negative(child)
            yield wrong and of_types(["array"], prefixItems=[*[True] * i, wrong], minItems=i + 1)

    def _dependent_required(self) -> Iterator[Emitted]:
        for name, needed in self._schema["dependentRequired"].items() if "object" in self._types else ():
            yield from (of_types(["object"], properties={other: False}, required=[name]) for other in needed)

    def _dependent_schemas(self) -> Iterator[Emitted]:
        for name, child in self._part.named("dependentSchemas").items() if "object" in self._types else ():
            present = of_types(["object"], required=[name])
            yield conjunction([present, self._translator.negative(child, self._types)])

    def _all_of(self) -> Iterator[Emitted]:
        yield from (self._translator.negative(child, self._types) for child in self._part.children("allOf"))

    def _any_of(self) -> Iterator[Emitted]:
        yield conjunction([self._translator.negative(each, self._types) for each in self._part.children("anyOf")])

    def _one_of(self) -> Iterator[Emitted]:
        branches = self._part.children("oneOf")
        yield conjunction([self._translator.negative(branch, self._types) for branch in branches])
        valid = [self._translator.positive(branch, self._types) for branch in branches]
        yield from (conjunction(pair) for pair in combinations(valid, 2))

    def _not(self) -> Iterator[Emitted]:
        yield self._translator.positive(self._part.child("not"), self._types)

    def _if(self) -> Iterator[Emitted]:
        condition = self._part.child("if")
        if "then" in self._schema:
            wrong = self._translator.negative(self._part.child("then"), self._types)
            yield conjunction([self._translator.positive(condition, self._types), wrong])
        if "else" in self._schema:
            wrong = self._translator.negative(self._part.child("else"), self._types)
            yield conjunction([self._translator.negative(condition, self._types), wrong])

    def _ref(self) -> Iterator[Emitted]:
        yield self._translator.reference(self._part, "$ref", negated=True)
