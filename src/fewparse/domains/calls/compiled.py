"""The constraint of programs of calls: that of each function is compiled when its name is reached."""

from functools import partial
from typing import NamedTuple

from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.copying import CopyGrammar
from fewparse.constrain.dispatch import Dispatch, HeadTrie
from fewparse.constrain.engine import Limits
from fewparse.constrain.json import JsonConstraint
from fewparse.constrain.state import Constraint
from fewparse.domains.calls.declarations import Declarations, FunctionDeclaration
from fewparse.domains.calls.grammar import function_grammar
from fewparse.domains.calls.program import Notation, written_name, written_value
from fewparse.domains.calls.values import SEPARATOR
from fewparse.json_schema.document import Document
from fewparse.json_schema.translate import translate
from fewparse.vocabulary import Vocabulary


class CallForm(NamedTuple):
    """How calls are written: the notation, whether a program is a list, and the grammar rules that are copied."""

    notation: Notation = "call"
    several: bool = False
    copied_rules: tuple[str, ...] = ()

    def head(self, function: FunctionDeclaration) -> str:
        """Return the text with which the calls of a function start, and no others."""
        if self.notation == "json":
            return f'{{"name":{written_value(function.name, compact=True)}'
        return f"{written_name(function.name)}("


class FunctionConstraints:
    """The constraints of the calls of all functions for one vocabulary."""

    def __init__(
        self, declarations: Declarations, form: CallForm, vocabulary: Vocabulary, limits: Limits | None = None
    ) -> None:
        self._declarations = declarations
        self._form = form
        self._limits = limits or Limits()
        self._compiled: dict[int, Constraint | CopyGrammar] = {}
        separator, last = (",", "}") if form.notation == "json" else (SEPARATOR, ")")
        heads = map(form.head, declarations.functions)
        self._heads = HeadTrie(heads, separator if form.several else None, last, vocabulary)

    def dispatch(self, utterance: str = "") -> Dispatch:
        """Return the constraint of programs for an utterance, which matters if text is copied from it."""
        return Dispatch(self._heads, partial(self._open, utterance))

    def _open(self, utterance: str, key: int) -> Constraint:
        if key not in self._compiled:
            self._compiled[key] = self._compile(self._declarations.functions[key])
        found = self._compiled[key]
        return found.constraint(utterance) if isinstance(found, CopyGrammar) else found

    def _compile(self, function: FunctionDeclaration) -> Constraint | CopyGrammar:
        """Return the constraint of the calls of a function, or their grammar if text of it is copied."""
        vocabulary = self._heads.vocabulary
        if self._form.notation == "json":
            return json_constraint(function, self._declarations, vocabulary, self._limits)
        grammar = function_grammar(function, self._declarations)
        copied = [name for name in self._form.copied_rules if name in grammar.rules]
        if copied:
            return CopyGrammar(grammar, copied, vocabulary, self._limits)
        return CfgConstraint(grammar, vocabulary, self._limits)


def json_constraint(
    function: FunctionDeclaration, declarations: Declarations, vocabulary: Vocabulary, limits: Limits | None = None
) -> JsonConstraint:
    """Return the constraint of the calls of a function in the notation `json`; raise `SchemaError`."""
    document = Document(declarations.call_schema(function), function.name)
    return JsonConstraint(translate(document), vocabulary, limits)
