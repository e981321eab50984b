"""The constraints `json-schema` and `json-object`: programs are JSON texts."""

import json
from functools import cached_property
from typing import Annotated

from pydantic import Field

from fewparse.constrain.engine import Limits
from fewparse.constrain.json import JsonConstraint
from fewparse.constrain.state import Constraint, LeadConstraint
from fewparse.domains.constraints import ConstraintKind
from fewparse.domains.schema import ConstraintTable, FileName
from fewparse.errors import UsageError
from fewparse.example import Target
from fewparse.files import path_inside
from fewparse.json_schema.document import Schema, read_schema
from fewparse.json_schema.validation import check_value, make_validator, parse_json
from fewparse.prompt import Template
from fewparse.vocabulary import BYTES, Vocabulary


class JsonSchemaTable(ConstraintTable):
    """[constraint] with kind = "json-schema"."""

    schema_file: Annotated[FileName, Field(alias="schema")]


class JsonObjectConstraint(ConstraintKind):
    """`kind = "json-object"`: JSON objects."""

    def build(self, vocabulary: Vocabulary, target: Target, utterance: str, template: Template) -> Constraint:
        """Return the compact JSON texts that are valid under the schema."""
        limits = Limits(isolate=self.domain.isolate_grammar)
        return LeadConstraint(JsonConstraint(self.schema, vocabulary, limits), template.lead)

    @cached_property
    def schema(self) -> Schema:
        """The schema of programs."""
        return {"type": "object"}

    def check(self, target: Target) -> None:
        """Raise an error if the schema cannot be enforced."""
        if target == "canonical":
            raise UsageError(
                f"the domain {self.domain.name} has no canonical utterances", "Use the target `program`."
            )
        _ = self._constraint

    @cached_property
    def _constraint(self) -> JsonConstraint:
        return JsonConstraint(self.schema, BYTES)

    def canonical_program(self, program: str) -> str:
        """Return a JSON text as the constraint writes it; raise `InvalidProgram` if it is not valid."""
        value = parse_json(program)
        check_value(value, make_validator(self.schema))
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class JsonSchemaConstraint(JsonObjectConstraint):
    """`kind = "json-schema"`: JSON texts that are valid under the file `schema`."""

    table = JsonSchemaTable
    settings: JsonSchemaTable

    @cached_property
    def schema(self) -> Schema:
        """The schema of the file."""
        return read_schema(path_inside(self.domain.folder, self.settings.schema_file))
