"""A domain: what to parse into, with everything that its folder holds on demand."""

import hashlib
import importlib
import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fewparse.constrain.cfg import ContextFree
from fewparse.constrain.copy_spans import copy_spans
from fewparse.constrain.state import Constraint
from fewparse.constrain.trie import Trie
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.domains.examples import EXAMPLES, read_examples
from fewparse.domains.schema import GRAMMATICAL, DomainTable
from fewparse.errors import (
    ConstraintError,
    DomainError,
    ExecutionError,
    LimitExceeded,
    UnknownName,
    UsageError,
    listed,
)
from fewparse.example import Example, Target
from fewparse.files import read_text
from fewparse.grammar.export.notations import to_gbnf
from fewparse.grammar.induction.induce import induce
from fewparse.grammar.induction.rule_writer import FREE_TEXT
from fewparse.grammar.readers.leading_space import strip_leading_space
from fewparse.grammar.readers.load import load_grammar
from fewparse.grammar.rules import Grammar, Text, trim, undefined
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.grammar.translation.translator import Translator
from fewparse.prompt import Template, bundled_template, read_template
from fewparse.retrieve.folding import Fold, folding, word_kinds
from fewparse.vocabulary import Vocabulary


@dataclass(frozen=True)
class Domain:
    """What to parse into: settings, the pool of examples and, on demand, everything that the folders hold.

    `folder` has the settings, the grammar, prompts and the executor; `data` the examples, mostly the same folder.
    It has not its `own_grammar` where a caller has put another one in its place; `left_out` counts the examples of
    the pool that are not taught because that grammar, or its own, cannot say them.
    """

    folder: Path
    table: DomainTable
    examples: tuple[Example, ...]
    data: Path
    own_grammar: bool = True
    left_out: int = 0

    @property
    def name(self) -> str:
        """The name that the folder gives itself."""
        return self.table.name

    @cached_property
    def test_examples(self) -> tuple[Example, ...]:
        """The held-out examples of `test.jsonl`; none where there is no such file."""
        path = self.data / "test.jsonl"
        return read_examples(path) if path.exists() else ()

    @cached_property
    def spare_examples(self) -> tuple[Example, ...]:
        """Training examples beyond the pool: neither taught nor held out, to choose settings by."""
        return read_examples(self.data / EXAMPLES)[len(self.examples) + self.left_out :]

    def adapter_path(self, target: Target) -> Path:
        """Where the adapter for a target lies, if there is one: beside the examples that it was tuned on."""
        return self.data / f"adapter-{target}.gguf"

    def data_sha256(self, target: Target) -> str:
        """What identifies all that a model can learn from the examples of the pool."""
        taught = [(e.utterance, e.context, e.output(target)) for e in self.for_target(target).examples]
        return hashlib.sha256(json.dumps(taught).encode()).hexdigest()

    @cached_property
    def language(self) -> Grammar | SynchronousGrammar:
        """The grammar as the folder has it, or as its examples induce it; its texts begin with no blank."""
        chosen = self.table.constraint
        if chosen.kind == "induced":
            return induce((example.program for example in self.examples), chosen.merge).grammar
        opened = load_grammar(self.grammar_path, chosen.dialect, chosen.start)
        return strip_leading_space(opened) if isinstance(opened, SynchronousGrammar) else opened

    @property
    def grammar_path(self) -> Path:
        """The file or folder of the grammar."""
        return self.folder / self.table.constraint.grammar

    @property
    def grammar(self) -> Grammar:
        """The grammar of programs."""
        return self.side("program")

    def side(self, target: Target) -> Grammar:
        """The grammar of what a model should say."""
        if isinstance(self.language, SynchronousGrammar):
            return self.language.side("program" if target == "program" else "utterance")
        if target == "canonical":
            raise UsageError(
                f"the grammar of the domain {self.name} knows no canonical utterances",
                "Write a synchronous one (grammar.scfg), or use the target `program`.",
            )
        return self.language

    @cached_property
    def translator(self) -> Translator | None:
        """Canonical utterances to programs and back, where the grammar has both; the shortest program wins."""
        return Translator(self.language) if isinstance(self.language, SynchronousGrammar) else None

    @cached_property
    def _learned_translator(self) -> Translator | None:
        return self.translator and self.translator.with_learned_scorer(
            example.program for example in self.examples
        )

    def scored_translator(self, scorer: ScorerName | None = None) -> Translator | None:
        """The translator with a scorer; if none is named, the one that the domain has chosen."""
        learned = (scorer or self.table.constraint.scorer) == "learned"
        return self._learned_translator if learned else self.translator

    def for_target(self, target: Target) -> "Domain":
        """The domain with all that its examples need for a target: canonical utterances are made where missing.

        Examples that were fetched and that the grammar cannot say are left out; in a domain's own folder, an
        example like that is a mistake.
        """
        if target == "program" or all(example.canonical for example in self.examples) or self.translator is None:
            return self
        spoken = [self._with_canonical(example, self.translator) for example in self.examples]
        taught = tuple(example for example in spoken if example is not None)
        if not taught:
            raise UsageError(
                f"the grammar derives the program of none of the {len(spoken)} examples of {self.name}",
                f"{self._check_command} shows how far each of them gets.",
            )
        return replace(self, examples=taught, left_out=len(spoken) - len(taught))

    def _with_canonical(self, example: Example, translator: Translator) -> Example | None:
        if example.canonical:
            return example
        translation = translator.to_utterance(example.program)
        if translation.best is not None:
            return replace(example, canonical=translation.best)
        if self.data != self.folder:
            return None
        raise DomainError(
            f"the program {example.program} {translation.error}",
            self.data / EXAMPLES,
            hint=f"{self._check_command} lists all such examples.",
        )

    @property
    def _check_command(self) -> str:
        return f"`fewparse check {self.name}{'' if self.own_grammar else f' --grammar {self.grammar_path}'}`"

    def as_spoken(self, example: Example) -> Example:
        """An example, without its canonical utterance where that belongs to a grammar that was replaced."""
        return example if self.own_grammar else replace(example, canonical=None)

    @cached_property
    def fold(self) -> Fold | None:
        """How retrieval folds names of one kind into one word, where the domain asks for it."""
        if not self.table.retrieve.fold:
            return None
        for name in self.table.retrieve.fold:
            if name not in self.grammar.rules:
                hint = "Give the grammar a rule of that name, or take it out of `fold` in domain.toml."
                raise UnknownName("rule to fold", name, self.grammar.rules, hint)
        return folding(word_kinds(self.grammar, self.table.retrieve.fold))

    def template(self, name: str | None = None) -> Template:
        """A prompt template: a file of the folder, or a bundled one."""
        name = name or self.table.prompt[self.table.target]
        path = self.folder / (name if name.endswith(".toml") else f"{name}.toml")
        if name != "domain" and path.exists():
            return read_template(read_text(path, DomainError), path)
        return bundled_template(name)

    def constraint(self, vocabulary: Vocabulary, target: Target, lead: str, utterance: str) -> Constraint:
        """The condition on outputs, for this utterance where free text is copied from it."""
        chosen = self.table.constraint
        if chosen.kind == "none":
            return Unconstrained(vocabulary, lead.encode())
        if chosen.kind == "trie":
            return Trie((meaning.output(target) for meaning in self.meanings), vocabulary, lead)
        return ContextFree(self.side(target), vocabulary, lead, self.copied, utterance)

    def server_grammar(self, target: Target, lead: str, utterance: str) -> str:
        """The condition on outputs in the notation of llama.cpp, which other servers read too."""
        chosen = self.table.constraint
        if chosen.kind == "none":
            raise UsageError(f"the domain {self.name} has no grammar", "Leave --server-grammar out.")
        if chosen.kind == "trie":
            said = tuple(
                (Text(text),) for text in dict.fromkeys(meaning.output(target) for meaning in self.meanings)
            )
            return to_gbnf(Grammar({"start": said}, "start").with_prefix(lead))
        return to_gbnf(copy_spans(self.side(target), self.copied, utterance).with_prefix(lead))

    @property
    def copied(self) -> tuple[str, ...]:
        """The rules whose text is copied from the utterance; an induced grammar has one for all texts."""
        chosen = self.table.constraint
        return (FREE_TEXT,) if chosen.copy_rules and chosen.kind == "induced" else chosen.copy_rules

    @property
    def constraint_depends_on_utterance(self) -> bool:
        """Whether a constraint serves for one utterance only."""
        return self.table.constraint.kind in GRAMMATICAL and bool(self.copied)

    def program_of(self, output: str, target: Target) -> str | None:
        """The program that an output stands for; None where it stands for none, or is too long to find out."""
        if target == "program":
            return output
        if not self.table.constraint.synchronous or self.translator is None:
            return self._programs.get(output)
        try:
            return self._meaning(output, self.translator)
        except LimitExceeded:
            return None

    def _meaning(self, canonical: str, translator: Translator) -> str | None:
        """The best program; what the examples make likely is only learned where there is a choice."""
        translation = translator.to_program(canonical, k=2)
        certain = translation.complete and len(translation.k_best) < 2
        scored = None if certain else self.scored_translator()
        return translation.best if scored is None else scored.to_program(canonical).best

    @cached_property
    def meanings(self) -> tuple[Example, ...]:
        """All that can be said, where that is a finite set: the examples, or a file of the domain's."""
        name = self.table.constraint.strings
        return self.examples if name is None else read_examples(self.data / name, ("program",))

    @cached_property
    def _programs(self) -> dict[str, str]:
        return {e.canonical: e.program for e in reversed(self.meanings) if e.canonical is not None}

    @cached_property
    def executor(self) -> Callable[[str], Any] | None:
        """The function that executes programs, loaded on first use."""
        return self._function("executor", self.table.executor)

    @cached_property
    def normal_form(self) -> Callable[[str], str] | None:
        """The function that writes programs in the one form in which they are compared, loaded on first use."""
        return self._function("normal form", self.table.normal_form)

    def _function(self, purpose: str, chosen: str | None) -> Callable[[str], Any] | None:
        """A function of a file of the folder, or of a module."""
        if chosen is None:
            return None
        place, _, name = chosen.partition(":")
        path = self.folder / "domain.toml"
        try:
            module = load_file(self.folder / place) if place.endswith(".py") else importlib.import_module(place)
        except Exception as error:
            raise DomainError(f"the {purpose} {place} cannot be loaded: {error!r}", path) from error
        function = getattr(module, name, None)
        if not callable(function):
            raise DomainError(f"the {purpose} {place} has no function `{name}`", path)
        return function  # type: ignore[no-any-return]

    def execute(self, program: str) -> Any:
        """The denotation of a program; what the executor raises or JSON cannot say is an `ExecutionError`."""
        if self.executor is None:
            raise ExecutionError(f"the domain {self.name} has no executor")
        try:
            answer = self.executor(program)
            json.dumps(answer, allow_nan=False, sort_keys=True)
        except Exception as error:
            raise ExecutionError(str(error) or type(error).__name__) from error
        return answer

    def check(self, target: Target | None = None, template: str | None = None) -> None:
        """Read all that a parse will need, so that mistakes show before a model is loaded."""
        target = target or self.table.target
        needed = (*self.examples, *(self.meanings if self.table.constraint.kind == "trie" else ()))
        silent = target == "canonical" and not all(example.canonical for example in needed)
        if silent and not self.table.constraint.synchronous:
            raise UsageError(f"the domain {self.name} lacks canonical utterances", "Use the target `program`.")
        if self.table.constraint.kind in GRAMMATICAL:
            side = self.side(target)
            if not trim(side).grammar.rules:
                names = sorted(undefined(side))
                raise ConstraintError(
                    "the grammar derives no text at all from its start",
                    f"There are no rules for {listed(names)}." if names else "Does a recursion lack its end?",
                )
            copy_spans(side, self.copied, "")
        _ = self.fold, self.template(template), self.executor, self.normal_form


def load_file(path: Path) -> Any:
    """A Python file of a domain folder as a module."""
    spec = importlib.util.spec_from_file_location(f"fewparse_domain_{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no Python file at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
