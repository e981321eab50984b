"""The constraints `json-schema` and `json-object`: programs are JSON texts."""

import hashlib
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Annotated

from pydantic import Field

from fewparse.constrain.engine import Limits
from fewparse.constrain.json import JsonConstraint
from fewparse.constrain.state import Constraint, LeadConstraint
from fewparse.domains.constraints import ConstraintKind
from fewparse.domains.fields import FileName
from fewparse.domains.schema import ConstraintTable
from fewparse.errors import UsageError
from fewparse.example import Target
from fewparse.files import path_inside
from fewparse.json_schema.document import Document, read_schema
from fewparse.json_schema.emitted import comparable
from fewparse.json_schema.translate import Translation, translate
from fewparse.json_schema.validation import parse_json
from fewparse.prompt import Template
from fewparse.text import to_json
from fewparse.vocabulary import BYTES, Vocabulary


class JsonSchemaTable(ConstraintTable):
    """[constraint] with kind = "json-schema"."""

    schema_file: Annotated[FileName, Field(alias="schema")]
    """The file of the JSON Schema."""


class JsonObjectConstraint(ConstraintKind):
    """`kind = "json-object"`: JSON objects."""

    def build(self, vocabulary: Vocabulary, target: Target, utterance: str, template: Template) -> Constraint:
        """Return the JSON texts that are valid under the schema."""
        limits = Limits(isolate=self.domain.isolate_grammar)
        return LeadConstraint(JsonConstraint(self._translation, vocabulary, limits), template.lead)

    @property
    def document(self) -> Document:
        """The schema of programs."""
        return Document({"type": "object"})

    @cached_property
    def _translation(self) -> Translation:
        return translate(self.document)

    @cached_property
    def _constraint(self) -> JsonConstraint:
        return JsonConstraint(self._translation, BYTES, Limits(isolate=self.domain.isolate_grammar))

    def check(self, target: Target) -> None:
        """Raise an error if the schema cannot be enforced."""
        if target == "canonical":
            message = f"the programs of the domain {self.domain.name} are JSON, without canonical utterances"
            raise UsageError(message, "Use the target `program`.")
        _ = self._constraint

    def outputs_sha256(self, target: Target) -> str | None:
        """Return a hash of the schema as it is enforced, which descriptions do not change."""
        enforced = to_json([self._translation.schema, self._translation.definitions], sort_keys=True)
        return hashlib.sha256(enforced.encode()).hexdigest()

    @property
    def normal_form(self) -> Callable[[str], Hashable]:
        """The value of a JSON text."""
        return lambda program: comparable(parse_json(program))

    def canonical_program(self, program: str) -> str:
        """Return a JSON text in the one layout that is generated; raise `InvalidProgram` if it is not valid."""
        return self._constraint.canonical(program)


class JsonSchemaConstraint(JsonObjectConstraint):
    """`kind = "json-schema"`: JSON texts that are valid under the file `schema`."""

    table = JsonSchemaTable
    settings: JsonSchemaTable

    @property
    def document(self) -> Document:
        """The schema of the file."""
        return read_schema(path_inside(self.domain.folder, self.settings.schema_file))
