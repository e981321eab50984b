"""JSON texts that are valid under a JSON Schema as a constraint."""

import json
import re
from functools import cached_property

import llguidance
from jsonschema.protocols import Validator

from fewparse.constrain.cfg import CfgState
from fewparse.constrain.engine import Limits, compile_text
from fewparse.constrain.isolation import check_in_child
from fewparse.constrain.json_ending import short_ending
from fewparse.constrain.json_scan import Scan
from fewparse.constrain.json_state import JsonState
from fewparse.constrain.json_writer import JsonWriter
from fewparse.constrain.state import Constraint, State
from fewparse.errors import ConstraintError, InvalidProgram, LimitExceeded, SchemaError
from fewparse.json_schema.emitted import EXAMPLES, UNIQUE, Emitted
from fewparse.json_schema.patterns import ANYTHING
from fewparse.json_schema.places import Place
from fewparse.json_schema.pruning import children, walk
from fewparse.json_schema.translate import Translation
from fewparse.json_schema.validation import check_value, make_validator, parse_json
from fewparse.vocabulary import BYTES, Vocabulary

# Without \u escapes every character has one spelling, so that a key cannot be repeated in another spelling.
OPTIONS = {"whitespace_flexible": False, "json_allowed_escapes": 'nrbtf\\"'}
MAX_TRIALS = 500
NOT_GENERATED = (
    "Control characters and numbers with very many digits are never generated; nor are values that are valid under "
    "one branch of a oneOf, if it cannot be excluded that another one is valid."
)
REASONS = (
    ("Unsatisfiable schema", "no value is valid here, because its conditions contradict each other"),
    ("not disjoint", "several patterns of patternProperties match the same name: that cannot be enforced"),
    ("min/maxProperties", "minProperties or maxProperties cannot be enforced together with optional properties"),
    ("circular references", "a schema that refers to itself cannot be combined with other conditions"),
    ("intersection stack", "schemas that refer to themselves cannot be combined"),
    ("regex is empty", "whether a text can have this pattern and this length cannot be decided"),
)
"""Parts of the engine's messages, and what they mean."""


class JsonConstraint(Constraint):
    """The compact JSON texts that are valid under a schema, with properties in the order of the schema.

    Raises `SchemaError` with the part of the schema that the engine cannot enforce, and `LimitExceeded`.
    """

    def __init__(self, translation: Translation, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        self.vocabulary = vocabulary
        self._translation = translation
        self._initial = compile_translation(translation, vocabulary, limits or Limits())
        schemas = list(walk(translation.schema, translation.definitions))
        patterns = [pattern for schema in schemas for pattern in schema.get("patternProperties", ())]
        self._finite_keys = any("|" in p or not p.endswith(f"{ANYTHING})$") for p in patterns)
        examples = [text.encode() for schema in schemas for text in schema.get(EXAMPLES, ())]
        self._examples = sorted(dict.fromkeys(examples), key=len)
        root = [translation.schema] if any(UNIQUE in schema for schema in schemas) else []
        self._scan = Scan(Place(root, translation.definitions))

    def start(self) -> State:
        """Return the initial state, a new copy for each search: a matcher must not be shared between threads."""
        return JsonState(CfgState(self._initial.deep_copy(), self.vocabulary), b"", self._scan, self._finite_keys)

    def ending(self, text: bytes) -> bytes | None:
        """Return a short suffix that completes a prefix; None if none was found."""
        start = self.start()
        state = start.advance(text) if text else start
        return short_ending(state, self._examples) if isinstance(state, JsonState) else None

    def accepts(self, text: bytes) -> bool:
        """Return whether a text leads to a final state, and `jsonschema` finds it valid as well."""
        return super().accepts(text) and self._is_valid(text)

    def _is_valid(self, text: bytes) -> bool:
        try:
            check_value(parse_json(text.decode()), self._validator)
        except (InvalidProgram, UnicodeDecodeError):
            return False
        return True

    def canonical(self, text: str) -> str:
        """Return a JSON text in any layout as the one text of its value that the constraint accepts.

        Raises `InvalidProgram` if it is not valid under the schema.
        """
        value = parse_json(text)
        check_value(value, self._validator, text)
        written = self._writer.write(value, self.start())
        if written is None:
            raise InvalidProgram("is valid under the schema, but cannot be generated", hint=NOT_GENERATED)
        return written

    @cached_property
    def _validator(self) -> Validator:
        return make_validator(self._translation.root)

    @cached_property
    def _writer(self) -> JsonWriter:
        return JsonWriter(self._translation)


def compile_translation(translation: Translation, vocabulary: Vocabulary, limits: Limits) -> llguidance.LLMatcher:
    """Compile a schema; an error of the engine becomes a `SchemaError` that names the part it is about."""
    text = to_llguidance(translation.schema, translation.definitions)
    try:
        if limits.isolate:
            check_in_child(text, len(vocabulary), limits.compile_seconds)
        return compile_text(text, vocabulary, limits)
    except ConstraintError as error:
        if isinstance(error, LimitExceeded) and "Unsatisfiable" not in error.message:
            raise
        raise located(translation, error.message) from None


def located(translation: Translation, message: str) -> SchemaError:
    """Return the error for the smallest part of a schema that the engine does not compile on its own."""
    current: Emitted = translation.schema
    origin = translation.root
    visited: set[int] = set()
    trials = 0
    while isinstance(current, dict):
        origin = translation.origins.get(id(current), origin)
        failed: Emitted | None = None
        for child in children(current, translation.definitions):
            if isinstance(child, dict) and id(child) not in visited and trials < MAX_TRIALS:
                visited.add(id(child))
                trials += 1
                found = failure(child, translation.definitions)
                if found is not None:
                    failed, message = child, found
                    break
        if failed is None:
            break
        current = failed
    reason = re.sub(r"^the grammar engine .*?failed to compile JSON schema: ", "", message.split("\n")[0])
    known = next((meaning for words, meaning in REASONS if words in reason), None)
    return origin.fail([], known or f"the engine cannot enforce it: {reason[:200]}")


def failure(schema: Emitted, definitions: dict[str, Emitted]) -> str | None:
    """Return why the engine does not compile a schema; None if it does."""
    try:
        compile_text(to_llguidance(schema, definitions), BYTES, Limits())
    except ConstraintError as error:
        return error.message
    return None


def to_llguidance(schema: Emitted, definitions: dict[str, Emitted]) -> str:
    """Write a schema as a grammar of the engine."""
    own = {"$schema": "https://json-schema.org/draft/2020-12/schema", "x-guidance": OPTIONS, "$defs": definitions}
    inner = own | ({} if schema is True else schema) if schema is not False else False
    return f'%llguidance {{"no_forcing": true}}\nstart: %json {json.dumps(inner)}\n'
