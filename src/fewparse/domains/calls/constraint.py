"""`kind = "calls"`: programs are calls of the functions that a file declares."""

from functools import cached_property

from jsonschema.protocols import Validator

from fewparse.constrain.engine import Limits
from fewparse.constrain.json import JsonConstraint
from fewparse.constrain.state import Constraint, LeadConstraint
from fewparse.domains.calls.compiled import CallForm, FunctionConstraints, json_constraint
from fewparse.domains.calls.declarations import FUNCTIONS, Declarations, FunctionDeclaration, read_declarations
from fewparse.domains.calls.grammar import program_grammar
from fewparse.domains.calls.ordering import ordered
from fewparse.domains.calls.program import Call, Notation, read_program, write_program, written_value
from fewparse.domains.calls.signatures import describe
from fewparse.domains.constraints import ConstraintKind, GrammarConstraint
from fewparse.domains.fields import FileName
from fewparse.domains.schema import ConstraintTable
from fewparse.errors import InvalidProgram, UnknownName, UsageError
from fewparse.example import Target
from fewparse.grammar.rules import Grammar
from fewparse.json_schema.document import Document
from fewparse.json_schema.validation import check_value, make_validator
from fewparse.lm.model import GrammarNotation
from fewparse.prompt import Template
from fewparse.text import is_unicode
from fewparse.vocabulary import BYTES, Vocabulary

MAX_CHECKED = 30


class CallsTable(ConstraintTable):
    """[constraint] with kind = "calls"."""

    functions: FileName = FUNCTIONS
    """The file of declarations of functions."""
    notation: Notation = "call"
    """How calls are written: `name(argument=value)`, or JSON."""
    several_calls: bool = False
    """Whether an output may have several calls."""


class CallsConstraint(GrammarConstraint):
    """`kind = "calls"`: calls of the functions in the file `functions`, in one of two notations."""

    table = CallsTable
    settings: CallsTable

    @cached_property
    def declarations(self) -> Declarations:
        """The functions that can be called."""
        return read_declarations(self.domain.data_file(self.settings.functions))

    @property
    def description(self) -> str:
        """A line per function."""
        return describe(self.declarations)

    @property
    def synchronous(self) -> bool:
        """Always false: there are no canonical utterances."""
        return False

    @cached_property
    def grammar(self) -> Grammar | None:
        """The grammar of the notation `call`; the notation `json` has none."""
        if self.settings.notation == "json":
            return None
        return program_grammar(self.declarations, self.settings.several_calls)

    def build(self, vocabulary: Vocabulary, target: Target, utterance: str, template: Template) -> Constraint:
        """Return the calls of all functions; the constraint of a function is compiled when it is reached."""
        if vocabulary not in self._compiled:
            settings, limits = self.settings, Limits(isolate=self.domain.isolate_grammar)
            form = CallForm(settings.notation, settings.several_calls, self.copied_rules)
            self._compiled[vocabulary] = FunctionConstraints(self.declarations, form, vocabulary, limits)
        return LeadConstraint(self._compiled[vocabulary].dispatch(utterance), template.lead)

    @cached_property
    def _compiled(self) -> "dict[Vocabulary, FunctionConstraints]":
        return {}

    @property
    def has_server_grammar(self) -> bool:
        """Whether there is a grammar; the notation `json` has none."""
        return self.settings.notation != "json"

    def server_grammar(
        self, target: Target, utterance: str, template: Template, notation: GrammarNotation = "gbnf"
    ) -> str:
        """Return the grammar; the notation `json` has none."""
        if not self.has_server_grammar:
            return ConstraintKind.server_grammar(self, target, utterance, template, notation)
        return super().server_grammar(target, utterance, template, notation)

    def check(self, target: Target) -> None:
        """Raise an error if a keyword of a parameter cannot be enforced, or a rule to copy has the wrong form.

        `fewparse new` has checked all functions. In the notation `json`, where that takes seconds for a thousand,
        only the first ones are checked again; others when they are called.
        """
        if target == "canonical":
            raise UsageError(
                f"the domain {self.domain.name} has no canonical utterances", "Use the target `program`."
            )
        if self.settings.notation == "json":
            if self.copied_rules:
                raise UsageError(
                    "the notation `json` has no rules whose text could be copied",
                    'Set notation = "call", or remove `copy` from domain.toml.',
                )
            for function in self.declarations.functions[:MAX_CHECKED]:
                json_constraint(function, self.declarations, BYTES)
        else:
            super().check(target)

    def canonical_program(self, program: str) -> str:
        """Return a program in the notation and order of the constraint; raise `InvalidProgram`."""
        calls, _ = read_program(program)
        several = self.settings.several_calls
        if len(calls) > 1 and not several:
            hint = "Set several_calls = true in domain.toml under [constraint]."
            raise InvalidProgram("has several calls, and the domain allows one", 0, hint)
        if self.settings.notation == "json":
            texts = [self._json_constraint(call).canonical(written_value(call.as_dict())) for call in calls]
            return f"[{','.join(texts)}]" if several else texts[0]
        written = write_program([self._checked(call) for call in calls], "call", several)
        if not is_unicode(written):
            raise InvalidProgram("contains a lone surrogate")
        return written

    def check_executable(self, program: str) -> None:
        """Raise `InvalidProgram` if a call names no function, or has arguments that its schema does not accept."""
        for call in read_program(program)[0]:
            self._checked(call)

    def _function(self, call: Call) -> FunctionDeclaration:
        functions = self.declarations.by_name
        if call.name not in functions:
            hint = UnknownName("function", call.name, functions).hint
            raise InvalidProgram(f"calls {call.name!r}, which is not a function of the domain", 0, hint)
        return functions[call.name]

    def _json_constraint(self, call: Call) -> JsonConstraint:
        function = self._function(call)
        if call.name not in self._json_constraints:
            self._json_constraints[call.name] = json_constraint(function, self.declarations, BYTES)
        return self._json_constraints[call.name]

    @cached_property
    def _json_constraints(self) -> dict[str, JsonConstraint]:
        return {}

    def _checked(self, call: Call) -> Call:
        """Return a call with its arguments in order; raise `InvalidProgram` if the function does not accept it."""
        function = self._function(call)
        if call.name not in self._validators:
            document = Document(self.declarations.schema_of(function), call.name)
            self._validators[call.name] = make_validator(document.root)
        check_value(call.arguments, self._validators[call.name])
        return Call(call.name, ordered(call.arguments, function.parameters, self.declarations.definitions))

    @cached_property
    def _validators(self) -> dict[str, Validator]:
        return {}
