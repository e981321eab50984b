"""Grammar rules for JSON values under a JSON Schema, as far as a context-free grammar can be exact.

Every text that the rules derive is valid under the schema. A keyword that they cannot enforce is an error with its
path. Properties are in the order of their declaration, and only declared ones are written.
"""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from fewparse.domains.calls.decimals import DIGIT, LARGEST, Bound, DecimalRules, Rules
from fewparse.domains.calls.exclusive import are_exclusive
from fewparse.domains.calls.merging import merged
from fewparse.domains.calls.program import written_value
from fewparse.domains.calls.schemas import REFERENCE, Schema
from fewparse.domains.calls.strings import LENGTHS, MAX_CHARS, PATTERNS, StringRules
from fewparse.errors import ConstraintError
from fewparse.grammar.rules import Chars, Production, Ref, Symbol, Text, fresh_name
from fewparse.json_schema.formats import RANGES, format_checker
from fewparse.json_schema.numbers import Bounds, bounds_of
from fewparse.text import is_unicode

SEPARATOR, COLON = ", ", ": "
MAX_ITEMS = 256
"""The length of arrays with a larger maximum length: it is not reached within the length limit of an output."""
KEYWORDS = {
    "string": frozenset(("minLength", "maxLength", "format")),
    "number": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "format")),
    "boolean": frozenset(),
    "null": frozenset(),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems")),
    "object": frozenset(("properties", "required", "additionalProperties", "minProperties", "maxProperties")),
}
ASSERTIONS = frozenset().union(*KEYWORDS.values())
ENFORCED = ASSERTIONS | {"type", "enum", "anyOf", "oneOf", "$ref", "description", "default"}


class NotEnforceable(ConstraintError):
    """A keyword that the rules cannot enforce; the message has its path."""

    def __init__(self, path: str, reason: str) -> None:
        hint = "Use --notation json, or leave out what cannot be enforced: --skip-unsupported."
        super().__init__(f"{path}: {reason}", hint)


class ValueRules:
    """Adds rules for the values of schemas to the rules of a grammar; equal schemas share a rule."""

    def __init__(self, rules: Rules, definitions: Mapping[str, Schema]) -> None:
        self._rules = rules
        self._definitions = definitions
        self._decimals = DecimalRules(rules)
        self._strings = StringRules(rules)
        self._known: dict[str, Ref] = {}

    def value(self, schema: Schema, path: str) -> Ref:
        """Return a rule for the values of a schema; raise `NotEnforceable` with the path of a keyword."""
        key = json.dumps({k: v for k, v in schema.items() if k not in ("description", "default")})
        if key not in self._known:
            name = fresh_name(self._name(schema), self._rules)
            self._rules[name] = ()  # reserves the name; a recursive schema refers to it
            self._known[key] = Ref(name)
            try:
                self._rules[name] = tuple(dict.fromkeys(self._productions(schema, path)))
            except NotEnforceable:
                del self._known[key], self._rules[name]
                raise
        return self._known[key]

    def _name(self, schema: Schema) -> str:
        if "$ref" in schema:
            return f"value_{schema['$ref'].removeprefix(REFERENCE)}"
        kind = schema.get("type")
        return f"value_{kind}" if isinstance(kind, str) else "value"

    def _productions(self, schema: Schema, path: str) -> list[Production]:
        self._check_keywords(schema, path)
        if "$ref" in schema:
            return [(self.value(self._definitions[schema["$ref"].removeprefix(REFERENCE)], path),)]
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = enumerate(self.branches(schema, keyword, path))
                return [(self.value(branch, f"{path}.{keyword}[{i}]"),) for i, branch in branches]
        types = schema.get("type", [*KEYWORDS])
        names = [types] if isinstance(types, str) else types
        if "enum" in schema:
            return self._constants(schema, names, path)
        return [(self._typed(schema, name, path),) for name in names]

    def _check_keywords(self, schema: Schema, path: str) -> None:
        for keyword in schema:
            if keyword not in ENFORCED:
                raise NotEnforceable(f"{path}.{keyword}", "a grammar cannot enforce this keyword")
        if "$ref" in schema and schema.keys() - {"$ref", "description", "default"}:
            raise NotEnforceable(f"{path}.$ref", "a grammar cannot enforce other keywords beside it")

    def branches(self, schema: Schema, keyword: str, path: str) -> list[Schema]:
        """Return the branches of `anyOf` or `oneOf`, each with the other keywords of the schema."""
        common = {key: value for key, value in schema.items() if key != keyword}
        branches: list[Schema] = []
        for i, branch in enumerate(schema[keyword]):
            alone = common.keys() <= {"description", "default"}
            own = branch if alone else merged([common, self._expanded(branch)])
            if own is None:
                raise NotEnforceable(f"{path}.{keyword}[{i}]", "a grammar cannot enforce other keywords beside it")
            branches.append(own)
        if keyword == "oneOf":
            expanded = [self._expanded(branch) for branch in branches]
            for i, one in enumerate(expanded):
                for other in expanded[:i]:
                    if not are_exclusive(one, other):
                        raise NotEnforceable(f"{path}.oneOf[{i}]", "a value may be valid under two branches")
        return branches

    def _expanded(self, schema: Schema) -> Schema:
        """Return the definition that a schema refers to, or the schema itself."""
        for _ in self._definitions:
            if "$ref" not in schema:
                break
            schema = self._definitions[schema["$ref"].removeprefix(REFERENCE)]
        return schema

    def _constants(self, schema: Schema, types: Sequence[str], path: str) -> list[Production]:
        if asserted := sorted(ASSERTIONS & schema.keys() - {"format"}):
            raise NotEnforceable(f"{path}.{asserted[0]}", "a grammar cannot enforce it together with `enum`")
        values = [value for value in schema["enum"] if any(has_type(value, name) for name in types)]
        if "format" in schema:
            values = [value for value in values if format_checker().conforms(value, schema["format"])]
        texts = list(map(written_value, values))
        if not all(map(is_unicode, texts)):
            raise NotEnforceable(f"{path}.enum", "a text contains a lone surrogate")
        return [(Text(text),) for text in texts]

    def _typed(self, schema: Schema, kind: str, path: str) -> Ref:
        """Return a rule for the values of one type."""
        match kind:
            case "string":
                return self._string(schema, path)
            case "number" | "integer":
                return self._number(schema, kind == "integer", path)
            case "array":
                return self._array(schema, path)
            case "object":
                return self._object(schema, path)
        words = ("true", "false") if kind == "boolean" else ("null",)
        self._rules.setdefault(kind, tuple((Text(word),) for word in words))
        return Ref(kind)

    def _string(self, schema: Schema, path: str) -> Ref:
        least, most = self._counts(schema, "minLength", "maxLength", MAX_CHARS, path)
        name = schema.get("format")
        if name is None or name in RANGES:
            return self._strings.string(least, most)
        if name not in PATTERNS:
            raise NotEnforceable(f"{path}.format", "a grammar cannot enforce this format")
        shortest, longest = LENGTHS.get(name, (0, MAX_CHARS))
        if least > shortest or (most is not None and most < longest):
            raise NotEnforceable(f"{path}.format", "a grammar cannot enforce it together with a length")
        return self._strings.formatted(name)

    def _counts(self, schema: Schema, low: str, high: str, limit: int, path: str) -> tuple[int, int | None]:
        """Return the bounds of a length; an upper bound beyond the limit is the limit."""
        for keyword in (low, high):
            if not isinstance(schema.get(keyword, 0), int | float) or schema.get(keyword, 0) < 0:
                raise NotEnforceable(f"{path}.{keyword}", "must be a number that is not negative")
        least, most = int(schema.get(low, 0)), schema.get(high)
        if least > limit:
            raise NotEnforceable(f"{path}.{low}", f"a grammar can enforce at most {limit}")
        return least, None if most is None else min(int(most), limit)

    def _number(self, schema: Schema, integer: bool, path: str) -> Ref:
        bounds = number_bounds(schema, path)
        if integer:
            return self._decimals.integer(*bounds.integers())
        if bounds == Bounds():
            return self._free_number()
        low = None if bounds.low is None else Bound(bounds.low, bounds.low_excluded)
        high = None if bounds.high is None else Bound(bounds.high, bounds.high_excluded)
        return self._decimals.number(low, high)

    def _free_number(self) -> Ref:
        """Return a rule for all numbers; those with an exponent of three digits may be too large for a float."""
        plain = self._decimals.number(None, None)
        sign = Chars.of(((ord("+"), ord("+")), (ord("-"), ord("-"))))
        exponents: list[Production] = [(*s, DIGIT, *d) for s in ((), (sign,)) for d in ((), (DIGIT,))]
        self._rules.setdefault("exponent", ((), *((Text("e"), *exponent) for exponent in exponents)))
        self._rules.setdefault("number", ((plain, Ref("exponent")),))
        return Ref("number")

    def _array(self, schema: Schema, path: str) -> Ref:
        least, most = self._counts(schema, "minItems", "maxItems", MAX_ITEMS, path)
        leading = enumerate(schema.get("prefixItems", ()))
        first = [self.value(each, f"{path}.prefixItems[{i}]") for i, each in leading]
        items = schema.get("items", not first or least > len(first))
        rest = None if items is False else self.value({} if items is True else items, f"{path}.items")
        return self._list(first, rest, least, most)

    def _list(self, first: Sequence[Ref], rest: Ref | None, least: int, most: int | None) -> Ref:
        """Return a rule for arrays: items of given rules, then items of one rule."""
        if rest is None:
            most = len(first) if most is None else min(most, len(first))
        length = max(least, len(first)) if most is None else most
        name = fresh_name("array", self._rules)
        item = [first[i] if i < len(first) else rest for i in range(length)]
        productions: list[Production] = [(Text("[]"),)] if least == 0 else []
        if most is None:
            assert rest is not None
            more = fresh_name(f"{name}_more", self._rules)
            self._rules[more] = ((), (Ref(more), Text(SEPARATOR), rest))
            item = item or [rest]
            tail: tuple[Symbol, ...] = (Ref(more), Text("]"))
        else:
            tail = (Text("]"),)
        following: tuple[Symbol, ...] = tail
        for i in range(len(item) - 1, 0, -1):
            each = item[i]
            assert each is not None
            here = fresh_name(f"{name}_{i}", self._rules)
            end: tuple[Production, ...] = ((Text("]"),),) if i >= least else ()
            self._rules[here] = (*end, (Text(SEPARATOR), each, *following))
            following = (Ref(here),)
        if item and (most is None or most >= max(1, least)):
            assert item[0] is not None
            productions.append((Text("["), item[0], *following))
        self._rules[name] = tuple(productions)
        return Ref(name)

    def _object(self, schema: Schema, path: str) -> Ref:
        properties: dict[str, Schema] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        least, most = self._counts(schema, "minProperties", "maxProperties", MAX_ITEMS, path)
        if properties:
            if least > len(required) or (most is not None and most < len(properties)):
                raise NotEnforceable(f"{path}.minProperties", "a grammar cannot enforce a number of properties")
            members = [
                (written_value(name) + COLON, self.value(each, f"{path}.{name}"), name in required)
                for name, each in properties.items()
            ]
            name = fresh_name("object", self._rules)
            self._rules[name] = ()
            self._rules[name] = ((Text("{"), *self.members(members, name, "}")),)
            return Ref(name)
        others = schema.get("additionalProperties", True)
        if others is False:
            self._rules.setdefault("empty_object", ((Text("{}"),),))
            return Ref("empty_object")
        value = self.value({} if others is True else others, f"{path}.additionalProperties")
        return self._dictionary(value, least, most, path)

    def _dictionary(self, value: Ref, least: int, most: int | None, path: str) -> Ref:
        """Return a rule for objects with any names; a name could occur twice, so their number has no bounds."""
        if least > 1 or (most is not None and most < MAX_ITEMS):
            raise NotEnforceable(f"{path}.minProperties", "a grammar cannot enforce a number of properties")
        name = f"dictionary_{value.name}" if least == 0 else f"nonempty_dictionary_{value.name}"
        if name not in self._rules:
            member = (self._strings.string(), Text(COLON), value)
            more = f"{name}_members"
            self._rules[more] = (member, (Ref(more), Text(SEPARATOR), *member))
            empty: tuple[Production, ...] = () if least else ((Text("{}"),),)
            self._rules[name] = (*empty, (Text("{"), Ref(more), Text("}")))
        return Ref(name)

    def members(self, members: Sequence[tuple[str, Ref, bool]], name: str, end: str) -> tuple[Symbol, ...]:
        """Return symbols for members in order, separated by commas, then the end; optional ones may be left out.

        A member is the text before its value, the rule of the value, and whether it is required. There are two
        rules for each position: before the first member, and after it, where a comma precedes the next one.
        """
        first: tuple[Symbol, ...] = (Text(end),)
        later: tuple[Symbol, ...] = (Text(end),)
        for i in range(len(members) - 1, -1, -1):
            label, value, required = members[i]
            here = (Text(label), value, *later)
            next_one = (Text(SEPARATOR + label), value, *later)
            if required:
                first, later = here, next_one
                continue
            names = fresh_name(f"{name}_first_{i}", self._rules), fresh_name(f"{name}_later_{i}", self._rules)
            self._rules[names[0]] = (here, first)
            self._rules[names[1]] = (next_one, later)
            first, later = (Ref(names[0]),), (Ref(names[1]),)
        return first


def number_bounds(schema: Schema, path: str) -> Bounds:
    """Return the bounds of a number; raise `NotEnforceable` if they are too large, or not numbers."""
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        if isinstance(schema.get(keyword, 0), bool) or not isinstance(schema.get(keyword, 0), int | float):
            raise NotEnforceable(f"{path}.{keyword}", "must be a number")
    bounds = bounds_of(schema)
    if schema.get("format") in RANGES:
        low, high = RANGES[schema["format"]]
        bounds = bounds.at_least(Decimal(low)).at_most(Decimal(high))
    if (bounds.low is not None and bounds.low > LARGEST) or (bounds.high is not None and bounds.high < -LARGEST):
        raise NotEnforceable(path, "a grammar cannot enforce bounds of numbers that large")
    return bounds


def has_type(value: Any, kind: str) -> bool:
    """Return whether a JSON value has a type of JSON Schema."""
    if isinstance(value, bool) or value is None:
        return kind == ("boolean" if isinstance(value, bool) else "null")
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    types = {"string": str, "number": int | float, "array": list, "object": dict}
    return kind in types and isinstance(value, types[kind])
