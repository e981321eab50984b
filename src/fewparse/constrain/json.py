"""JSON texts that are valid under a JSON Schema as a constraint."""

import json

from fewparse.constrain.cfg import CfgState
from fewparse.constrain.engine import Limits, compile_text
from fewparse.constrain.isolation import check_in_child
from fewparse.constrain.state import Constraint, State
from fewparse.json_schema.document import Schema
from fewparse.vocabulary import Vocabulary

# Without \u escapes every character has one spelling, so that a key cannot be repeated in another spelling.
OPTIONS = {"whitespace_flexible": False, "json_allowed_escapes": 'nrbtf\\"'}


class JsonConstraint(Constraint):
    """The compact JSON texts that are valid under a schema, with properties in the order of the schema."""

    def __init__(self, schema: Schema, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        self.vocabulary = vocabulary
        limits = limits or Limits()
        text = to_llguidance(schema)
        if limits.isolate:
            check_in_child(text, len(vocabulary), limits.compile_seconds)
        self._initial = compile_text(text, vocabulary, limits)

    def start(self) -> State:
        """Return the initial state, a new copy for each search: a matcher must not be shared between threads."""
        return CfgState(self._initial.deep_copy(), self.vocabulary)


def to_llguidance(schema: Schema) -> str:
    """Write a schema as a grammar of the engine."""
    if schema is True:
        schema = {}
    inner = schema if schema is False else {**schema, "x-guidance": OPTIONS}
    return f'%llguidance {{"no_forcing": true}}\nstart: %json {json.dumps(inner)}\n'
