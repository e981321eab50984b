"""The kinds of `[constraint]` in domain.toml; each builds the constraint of a parse from a domain."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.copy_spans import copied_characters, copy_spans
from fewparse.constrain.copying import CopyGrammar
from fewparse.constrain.engine import Limits, check_size, to_llguidance
from fewparse.constrain.state import Constraint, LeadConstraint
from fewparse.constrain.trie import Trie
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.domains.examples import EXAMPLES, locations
from fewparse.errors import ConstraintError, UsageError, listed
from fewparse.example import Target
from fewparse.grammar.export.notations import to_gbnf, useful_rules
from fewparse.grammar.induction.induce import induce, wider_level
from fewparse.grammar.induction.rule_writer import FREE_TEXT
from fewparse.grammar.readers.leading_space import strip_leading_space
from fewparse.grammar.readers.load import load_grammar
from fewparse.grammar.rules import Grammar, Text, trim, undefined
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.lm.model import GrammarNotation
from fewparse.prompt import Template
from fewparse.registry import Registry
from fewparse.vocabulary import Vocabulary

if TYPE_CHECKING:
    from fewparse.domains.domain import Domain
    from fewparse.domains.schema import ConstraintTable


class Quotation(NamedTuple):
    """How programs quote text: `pattern` finds a kind of text and the text, `template` writes both."""

    pattern: re.Pattern[str]
    template: str


class ConstraintKind(ABC):
    """Defines which outputs of a domain are well-formed.

    Only `build` is required. `table` is a subclass of `ConstraintTable` if the kind has its own settings in
    domain.toml.
    """

    table: ClassVar["type[ConstraintTable] | None"] = None
    constrains: ClassVar[bool] = True
    """Whether some outputs are ill-formed."""
    finite: ClassVar[bool] = False
    """Whether the outputs are the finite set `Domain.known_outputs`."""
    can_copy: ClassVar[bool] = False
    """Whether text can be required to be copied from the utterance."""
    needs_examples: ClassVar[bool] = False
    """Whether the constraint is made from the examples."""
    quotation: ClassVar[Quotation] = Quotation(re.compile(r'(\S+) "([^"]+)"'), '{} "{}"')
    """How programs quote text: after a word, which is its kind."""

    def __init__(self, domain: "Domain") -> None:
        self.domain = domain
        self.settings = domain.table.constraint

    def for_domain(self, domain: "Domain") -> Self:
        """Return the constraint for a domain that differs in its examples only, with what is loaded already."""
        changed = copy(self)
        changed.domain = domain
        changed.__dict__.pop("_shared", None)  # a constraint may be made from the examples
        return changed

    def constraint(self, vocabulary: Vocabulary, target: Target, utterance: str, template: Template) -> Constraint:
        """Return the constraint for an utterance; one that is the same for all utterances is built once."""
        if self.depends_on_utterance:
            return self.build(vocabulary, target, utterance, template)
        key = vocabulary, target, template
        if key not in self._shared:
            self._shared[key] = self.build(vocabulary, target, "", template)
        return self._shared[key]

    @cached_property
    def _shared(self) -> dict[tuple[Vocabulary, Target, Template], Constraint]:
        return {}

    @abstractmethod
    def build(self, vocabulary: Vocabulary, target: Target, utterance: str, template: Template) -> Constraint:
        """Return the constraint for an utterance on texts that the model generates: outputs after the lead."""

    @property
    def depends_on_utterance(self) -> bool:
        """Whether the constraint that `build` returns depends on the utterance."""
        return False

    @property
    def copied_rules(self) -> tuple[str, ...]:
        """The grammar rules whose text is copied from the utterance."""
        return ()

    @property
    def synchronous(self) -> bool:
        """Whether there is a grammar that pairs canonical utterances with programs."""
        return False

    @property
    def description(self) -> str:
        """What a model should know about the outputs, such as a line per function; by default, nothing."""
        return ""

    @property
    def known_texts(self) -> Mapping[str, Sequence[str]]:
        """Texts that programs may quote, by kind, in addition to those in the examples; by default, none."""
        return {}

    @property
    def grammar(self) -> Grammar | SynchronousGrammar | None:
        """The grammar; None if there is none."""
        return None

    @property
    def has_server_grammar(self) -> bool:
        """Whether the constraint can be sent to servers that constrain samples themselves."""
        return False

    def server_grammar(
        self, target: Target, utterance: str, template: Template, notation: GrammarNotation = "gbnf"
    ) -> str:
        """Return the constraint in a notation of servers that constrain samples themselves."""
        raise UsageError(
            f"the constraint `{self.settings.kind}` of the domain {self.domain.name} cannot be sent to a server",
            "Omit --server-grammar.",
        )

    @property
    def normal_form(self) -> Callable[[str], Any] | None:
        """Returns what equivalent programs have in common, if the domain does not; None compares their texts."""
        return None

    def canonical_program(self, program: str) -> str:
        """Return the program of an example as the constraint writes it, the same program if it is not rewritten.

        Raises `InvalidProgram` if it cannot be written so.
        """
        return program

    def check_executable(self, program: str) -> None:  # noqa: B027 -- optional
        """Raise `InvalidProgram` if a program must not be executed, whoever has written it."""

    def check(self, target: Target) -> None:  # noqa: B027 -- optional
        """Raise an error if the constraint cannot be built for a target."""

    def outputs_sha256(self, target: Target) -> str | None:
        """Return a hash of what defines the outputs for a target; None if nothing does but the examples or data.

        An adapter is only used for the outputs for which it was tuned.
        """
        return None

    def wider(self, programs: Sequence[str]) -> str | None:
        """Return the setting by which more of these programs would be well-formed; None if there is none."""
        return None

    @cached_property
    def utterances(self) -> dict[str, str]:
        """Canonical utterances of programs that are known, to which more are added."""
        return {}

    def store(self) -> None:  # noqa: B027 -- optional
        """Store what is known about programs for later runs."""


class GrammarConstraint(ConstraintKind):
    """`kind = "grammar"`: the sentences of the grammar file or folder `grammar`."""

    can_copy = True

    def build(self, vocabulary: Vocabulary, target: Target, utterance: str, template: Template) -> Constraint:
        """Return the sentences of one side of the grammar, with copy spans of the utterance."""
        limits = Limits(isolate=self.domain.isolate_grammar)
        if not self.copied_rules:
            return CfgConstraint(self.domain.side(target).with_prefix(template.lead), vocabulary, limits)
        key = target, template.lead, vocabulary
        if key not in self._copy_grammars:
            side = self.domain.side(target).with_prefix(template.lead)
            self._copy_grammars[key] = CopyGrammar(side, self.copied_rules, vocabulary, limits)
        return self._copy_grammars[key].constraint(utterance)

    @cached_property
    def _copy_grammars(self) -> dict[tuple[Target, str, Vocabulary], CopyGrammar]:
        """Grammars that are compiled for all utterances, by target, lead and vocabulary."""
        return {}

    @property
    def depends_on_utterance(self) -> bool:
        """Whether there are copy spans."""
        return bool(self.copied_rules)

    @property
    def copied_rules(self) -> tuple[str, ...]:
        """The rules listed in the setting `copy`."""
        return self.settings.copy_rules

    @property
    def synchronous(self) -> bool:
        """Whether the file is a synchronous grammar, by its dialect or suffix."""
        dialect = self.settings.dialect or PurePath(self.settings.grammar).suffix
        return dialect not in ("lark", ".lark")

    @cached_property
    def grammar(self) -> Grammar | SynchronousGrammar | None:
        """The grammar of the file or folder; the texts of a synchronous one start without a space."""
        settings, given = self.settings, self.domain.given.language
        opened = given or load_grammar(self.domain.grammar_path, settings.dialect, settings.start)
        return strip_leading_space(opened) if isinstance(opened, SynchronousGrammar) else opened

    @property
    def has_server_grammar(self) -> bool:
        """Always true."""
        return True

    def outputs_sha256(self, target: Target) -> str | None:
        """Return a hash of the rules of one side, which comments, layout and order do not change."""
        if self.grammar is None:
            return None
        side = trim(self.domain.side(target)).grammar
        rules = sorted((name, sorted(map(repr, productions))) for name, productions in side.rules.items())
        return hashlib.sha256(repr((side.start, rules)).encode()).hexdigest()

    def server_grammar(
        self, target: Target, utterance: str, template: Template, notation: GrammarNotation = "gbnf"
    ) -> str:
        """Return one side of the grammar, with all spans of the utterance."""
        copied = copy_spans(self.domain.side(target), self.copied_rules, utterance)
        check_size(copied, Limits())
        return written(copied.with_prefix(template.lead), notation)

    def check(self, target: Target) -> None:
        """Raise an error if the grammar derives nothing or a rule to copy has the wrong form."""
        side = self.domain.side(target)
        if not trim(side).grammar.rules:
            names = sorted(undefined(side))
            raise ConstraintError(
                "the grammar derives no text at all from its start rule",
                f"There are no rules for {listed(names)}." if names else "Check that every recursion can end.",
            )
        copied_characters(side, self.copied_rules)


class InducedConstraint(GrammarConstraint):
    """`kind = "induced"`: a grammar induced from the programs of the examples."""

    needs_examples = True

    @property
    def copied_rules(self) -> tuple[str, ...]:
        """The rule for free text of an induced grammar, if it has one and `copy` lists any rule."""
        return (FREE_TEXT,) if self.settings.copy_rules and FREE_TEXT in self.grammar.rules else ()

    @property
    def synchronous(self) -> bool:
        """Always false: only programs are induced."""
        return False

    @cached_property
    def grammar(self) -> Grammar:
        """The induced grammar, generalised according to `merge`."""
        examples = self.domain.examples

        def locate(number: int) -> str:
            example = examples[number - 1]
            where = locations(self.domain.data_file(EXAMPLES))
            return where.get(example.key, f'the program of "{example.utterance}"')

        return induce((example.program for example in examples), self.settings.merge, locate=locate).grammar

    def outputs_sha256(self, target: Target) -> str | None:
        """Return None: more examples change the grammar."""
        return None

    def wider(self, programs: Sequence[str]) -> str | None:
        """Return the next merge level that derives more of the programs."""
        own = [example.program for example in self.domain.examples]
        if (found := wider_level(own, self.settings.merge, programs)) is None:
            return None
        level, covered = found
        return f'merge = "{level}" under [constraint] derives {covered.derived} of {len(programs)}'


class FiniteConstraint(ConstraintKind):
    """`kind = "trie"`: the outputs of the examples, or of the file `strings`."""

    finite = True
    needs_examples = True

    def build(self, vocabulary: Vocabulary, target: Target, utterance: str, template: Template) -> Constraint:
        """Return a trie of the outputs."""
        return Trie(self._texts(target, template), vocabulary)

    @property
    def has_server_grammar(self) -> bool:
        """Always true."""
        return True

    def server_grammar(
        self, target: Target, utterance: str, template: Template, notation: GrammarNotation = "gbnf"
    ) -> str:
        """Return the outputs as alternatives of one rule."""
        texts = dict.fromkeys(self._texts(target, template))
        return written(Grammar({"start": tuple((Text(text),) for text in texts)}, "start"), notation)

    def _texts(self, target: Target, template: Template) -> Iterator[str]:
        return (template.with_lead(output.output(target)) for output in self.domain.known_outputs)


class NoConstraint(ConstraintKind):
    """`kind = "none"`: any text."""

    constrains = False

    def build(self, vocabulary: Vocabulary, target: Target, utterance: str, template: Template) -> Constraint:
        """Return the constraint that allows any text."""
        return LeadConstraint(Unconstrained(vocabulary), template.lead)


def written(grammar: Grammar, notation: GrammarNotation) -> str:
    """Write a grammar in a notation of servers."""
    return to_gbnf(grammar) if notation == "gbnf" else to_llguidance(useful_rules(grammar))


CONSTRAINT_KINDS: Registry[type[ConstraintKind]] = Registry(
    "constraint",
    {
        "grammar": "fewparse.domains.constraints:GrammarConstraint",
        "induced": "fewparse.domains.constraints:InducedConstraint",
        "trie": "fewparse.domains.constraints:FiniteConstraint",
        "none": "fewparse.domains.constraints:NoConstraint",
        "sql": "fewparse.domains.sql.constraint:SqlConstraint",
        "calls": "fewparse.domains.calls.constraint:CallsConstraint",
        "json-schema": "fewparse.domains.json_constraints:JsonSchemaConstraint",
        "json-object": "fewparse.domains.json_constraints:JsonObjectConstraint",
    },
)
