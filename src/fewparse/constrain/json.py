"""JSON texts that are valid under a JSON Schema as a constraint."""

import json

from fewparse.constrain.cfg import CfgState
from fewparse.constrain.engine import Limits, compile_text
from fewparse.constrain.isolation import check_in_child
from fewparse.constrain.json_scan import Scan
from fewparse.constrain.json_state import JsonState
from fewparse.constrain.state import Constraint, State
from fewparse.json_schema.emitted import UNIQUE, Emitted
from fewparse.json_schema.patterns import ANYTHING
from fewparse.json_schema.places import Place
from fewparse.json_schema.pruning import walk
from fewparse.json_schema.translate import Translation
from fewparse.vocabulary import Vocabulary

# Without \u escapes every character has one spelling, so that a key cannot be repeated in another spelling.
OPTIONS = {"whitespace_flexible": False, "json_allowed_escapes": 'nrbtf\\"'}


class JsonConstraint(Constraint):
    """The compact JSON texts that are valid under a schema, with properties in the order of the schema."""

    def __init__(self, translation: Translation, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        self.vocabulary = vocabulary
        limits = limits or Limits()
        text = to_llguidance(translation.schema, translation.definitions)
        if limits.isolate:
            check_in_child(text, len(vocabulary), limits.compile_seconds)
        self._initial = compile_text(text, vocabulary, limits)
        schemas = list(walk(translation.schema, translation.definitions))
        patterns = [pattern for schema in schemas for pattern in schema.get("patternProperties", ())]
        self._finite_keys = any("|" in p or not p.endswith(f"{ANYTHING})$") for p in patterns)
        root = [translation.schema] if any(UNIQUE in schema for schema in schemas) else []
        self._scan = Scan(Place(root, translation.definitions))

    def start(self) -> State:
        """Return the initial state, a new copy for each search: a matcher must not be shared between threads."""
        return JsonState(CfgState(self._initial.deep_copy(), self.vocabulary), b"", self._scan, self._finite_keys)


def to_llguidance(schema: Emitted, definitions: dict[str, Emitted]) -> str:
    """Write a schema as a grammar of the engine."""
    own = {"$schema": "https://json-schema.org/draft/2020-12/schema", "x-guidance": OPTIONS, "$defs": definitions}
    inner = own | ({} if schema is True else schema) if schema is not False else False
    return f'%llguidance {{"no_forcing": true}}\nstart: %json {json.dumps(inner)}\n'
