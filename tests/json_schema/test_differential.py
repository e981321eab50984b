"""Generated schemas: what the constraint accepts and generates is compared with the library `jsonschema`."""

import json
import random
import re
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from fewparse.constrain.json import JsonConstraint
from fewparse.constrain.json_writer import JsonWriter
from fewparse.errors import LimitExceeded, SchemaError
from fewparse.files import unique_object
from fewparse.json_schema.document import Document
from fewparse.json_schema.emitted import STRICTER
from fewparse.json_schema.pruning import walk
from fewparse.json_schema.translate import translate
from fewparse.testing.constraints import end_of_walk
from fewparse.vocabulary import BYTES
from support.campaign import examples
from support.json_schemas import documents, neighbours, values

WALKS = 2
LONG = 40
NOT_GENERATED = re.compile(r"\\u00|\\[bf]|\d{16}|e[-+]?\d")
"""Control characters, and numbers with many digits."""


@examples(70)
@given(documents(), st.lists(values, min_size=1, max_size=6), st.integers(0, 999))
def test_exactly_the_valid_values_are_accepted_and_generated(
    schema: dict[str, Any], instances: list[Any], seed: int
) -> None:
    """Schemas that are refused, and values that are left out of stricter schemas, are the only exceptions."""
    try:
        translation = translate(Document(schema))
        constraint = JsonConstraint(translation, BYTES)
    except (SchemaError, LimitExceeded):
        return
    draft = jsonschema.validators.validator_for(schema)
    oracle = draft(schema, format_checker=draft.FORMAT_CHECKER)
    is_stricter = any(STRICTER in part for part in walk(translation.schema, translation.definitions))
    writer, rng = JsonWriter(translation), random.Random(seed)
    for _ in range(WALKS):
        last = end_of_walk(constraint, rng, LONG)
        value = json.loads(last.text, object_pairs_hook=unique_object)
        oracle.validate(value)
        instances += neighbours(value, rng)
    for instance in instances:
        written = writer.write(instance, constraint.start())
        if written is not None:
            oracle.validate(
                json.loads(written)
            )  # not the instance: 1.0 is no integer in draft 4, and written as 1
            assert json.loads(written) == instance
        elif not is_stricter and not NOT_GENERATED.search(json.dumps(instance)):
            assert not oracle.is_valid(instance), instance
