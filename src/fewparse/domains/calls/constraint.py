"""`kind = "calls"`: programs are calls of the functions that a file declares."""

from functools import cached_property

from jsonschema.protocols import Validator

from fewparse.constrain.engine import Limits
from fewparse.constrain.state import Constraint, LeadConstraint
from fewparse.domains.calls.compiled import CallForm, FunctionConstraints, call_document
from fewparse.domains.calls.declarations import FUNCTIONS, Declarations, read_declarations
from fewparse.domains.calls.grammar import program_grammar
from fewparse.domains.calls.ordering import ordered
from fewparse.domains.calls.program import Call, Notation, read_program, write_program
from fewparse.domains.calls.signatures import describe
from fewparse.domains.constraints import ConstraintKind, GrammarConstraint
from fewparse.domains.schema import ConstraintTable, FileName
from fewparse.errors import InvalidProgram, UnknownName, UsageError
from fewparse.example import Target
from fewparse.files import path_inside
from fewparse.grammar.rules import Grammar
from fewparse.json_schema.translate import translate
from fewparse.json_schema.validation import check_value, make_validator
from fewparse.prompt import Template
from fewparse.text import is_unicode
from fewparse.vocabulary import Vocabulary

MAX_CHECKED = 30


class CallsTable(ConstraintTable):
    """[constraint] with kind = "calls"."""

    functions: FileName = FUNCTIONS
    notation: Notation = "call"
    several_calls: bool = False


class CallsConstraint(GrammarConstraint):
    """`kind = "calls"`: calls of the functions in the file `functions`, in one of two notations."""

    table = CallsTable
    settings: CallsTable

    @cached_property
    def declarations(self) -> Declarations:
        """The functions that can be called."""
        return read_declarations(path_inside(self.domain.folder, self.settings.functions))

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

    def gbnf(self, target: Target, utterance: str, template: Template) -> str:
        """Return the grammar in GBNF; the notation `json` has none."""
        if self.settings.notation == "json":
            return ConstraintKind.gbnf(self, target, utterance, template)
        return super().gbnf(target, utterance, template)

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
                translate(call_document(function, self.declarations))
        else:
            super().check(target)

    def canonical_program(self, program: str) -> str:
        """Return a program in the notation and order of the constraint; raise `InvalidProgram`."""
        calls, _ = read_program(program)
        if len(calls) > 1 and not self.settings.several_calls:
            hint = "Set several_calls = true in domain.toml under [constraint]."
            raise InvalidProgram("has several calls, and the domain allows one", 0, hint)
        written = write_program(
            [self._checked(call) for call in calls], self.settings.notation, self.settings.several_calls
        )
        if not is_unicode(written):
            raise InvalidProgram("contains a lone surrogate")
        return written

    def _checked(self, call: Call) -> Call:
        """Return a call with its arguments in order; raise `InvalidProgram` if the function does not accept it."""
        declarations = self.declarations
        function = declarations.by_name.get(call.name)
        if function is None:
            hint = UnknownName("function", call.name, declarations.by_name).hint
            raise InvalidProgram(f"calls {call.name!r}, which is not a function of the domain", 0, hint)
        if call.name not in self._validators:
            self._validators[call.name] = make_validator(declarations.schema_of(function))
        check_value(call.arguments, self._validators[call.name])
        return Call(call.name, ordered(call.arguments, function.parameters, declarations.definitions))

    @cached_property
    def _validators(self) -> dict[str, Validator]:
        return {}
