"""Constraints by a grammar: read from the domain's file, or induced from the programs of its examples."""

from functools import cached_property
from pathlib import PurePath

from fewparse.constrain.cfg import CfgConstraint
from fewparse.constrain.copy_spans import copy_spans
from fewparse.constrain.state import Constraint
from fewparse.domains.constraints.kind import ConstraintKind
from fewparse.errors import ConstraintError, listed
from fewparse.example import Target
from fewparse.grammar.export.notations import to_gbnf
from fewparse.grammar.induction.induce import induce
from fewparse.grammar.induction.rule_writer import FREE_TEXT
from fewparse.grammar.readers.leading_space import strip_leading_space
from fewparse.grammar.readers.load import load_grammar
from fewparse.grammar.rules import Grammar, trim, undefined
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.vocabulary import Vocabulary


class GrammarConstraint(ConstraintKind):
    """`kind = "grammar"`: the sentences of the grammar file or folder `grammar`."""

    can_copy = True

    def build(self, vocabulary: Vocabulary, target: Target, lead: str, utterance: str) -> Constraint:
        """Return the sentences of one side of the grammar, with copy spans of the utterance."""
        return CfgConstraint(self.domain.side(target), vocabulary, lead, self.copied_rules, utterance)

    @property
    def depends_on_utterance(self) -> bool:
        """Whether there are copy spans."""
        return bool(self.copied_rules)

    @property
    def copied_rules(self) -> tuple[str, ...]:
        """The rules that the setting `copy` names."""
        return self.settings.copy_rules

    @property
    def synchronous(self) -> bool:
        """Whether the file is a synchronous grammar, by its dialect or suffix."""
        dialect = self.settings.dialect or PurePath(self.settings.grammar).suffix
        return dialect not in ("lark", ".lark")

    @cached_property
    def grammar(self) -> Grammar | SynchronousGrammar:
        """The grammar of the file or folder; the texts of a synchronous one start without a space."""
        opened = load_grammar(self.domain.grammar_path, self.settings.dialect, self.settings.start)
        return strip_leading_space(opened) if isinstance(opened, SynchronousGrammar) else opened

    def gbnf(self, target: Target, lead: str, utterance: str) -> str:
        """Return one side of the grammar in GBNF."""
        return to_gbnf(copy_spans(self.domain.side(target), self.copied_rules, utterance).with_prefix(lead))

    def check(self, target: Target) -> None:
        """Raise an error if the grammar derives nothing or a rule to copy has the wrong form."""
        side = self.domain.side(target)
        if not trim(side).grammar.rules:
            names = sorted(undefined(side))
            raise ConstraintError(
                "the grammar derives no text at all from its start rule",
                f"There are no rules for {listed(names)}." if names else "Check that every recursion can end.",
            )
        copy_spans(side, self.copied_rules, "")


class InducedConstraint(GrammarConstraint):
    """`kind = "induced"`: a grammar induced from the programs of the examples."""

    needs_examples = True

    @property
    def copied_rules(self) -> tuple[str, ...]:
        """The one rule of an induced grammar for free text, where `copy` names any."""
        return (FREE_TEXT,) if self.settings.copy_rules else ()

    @property
    def synchronous(self) -> bool:
        """Always false: only programs are induced."""
        return False

    @cached_property
    def grammar(self) -> Grammar:
        """The induced grammar, generalised as `merge` says."""
        return induce((example.program for example in self.domain.examples), self.settings.merge).grammar
