"""A domain: settings, examples and, loaded on demand, everything else in its folder."""

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from fewparse.constrain.state import Constraint
from fewparse.datasets.storage import DATA_NOTES, read_data_notes
from fewparse.domains.canonical import with_canonical
from fewparse.domains.constraints import CONSTRAINT_KINDS, ConstraintKind
from fewparse.domains.examples import EXAMPLES, OUT_OF_SCOPE, PAIR, UTTERANCE, numbered_examples, read_examples
from fewparse.domains.running import DomainFunctions
from fewparse.domains.values import (
    DomainParts,
    ExampleSource,
    GrammarSource,
    given_examples,
    given_values,
)
from fewparse.errors import DomainError, InvalidProgram, LimitExceeded, UnknownName, UsageError, caret
from fewparse.example import Example, Target
from fewparse.files import path_inside, read_text
from fewparse.grammar.readers.load import Dialect
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.grammar.translation.translator import Translator
from fewparse.limits import SETTINGS_BYTES
from fewparse.lm.model import GrammarNotation
from fewparse.prompt import Template, bundled_template, read_template
from fewparse.retrieve.folding import Fold, folding, rules_of_words
from fewparse.vocabulary import Vocabulary

TEST = "test.jsonl"
LOADED_ONCE = ("language", "translator", "executor", "normal_form")
DESCRIPTION = "description.txt"
PLAIN = Template("plain", "", "", "")
"""A template without a lead, for constraints on outputs alone."""


@dataclass(frozen=True, init=False)
class Domain(DomainFunctions):
    """The settings and examples of a domain, and its grammar, prompts and executor.

    In Python, it is made of `examples` (`Example` objects, or pairs of utterance and program), a `grammar` (text
    in the `dialect` lark or scfg, a path, or an object; without one, it is induced from the examples), the
    functions `executor` and `normal_form`, and settings, named as in domain.toml. `load_domain` makes the domain
    of a folder.

    `own_grammar` is false if the caller replaced the grammar; `underivable` counts examples of the pool that the
    grammar does not derive. With `isolate_grammar`, a child process compiles the grammar first, so that one that
    breaks the engine is an error. `paper` switches paper mode on or off, instead of domain.toml.
    """

    examples: tuple[Example, ...] = ()
    own_grammar: bool = True
    underivable: int = 0
    isolate_grammar: bool = False
    paper: bool | None = None

    def __init__(
        self,
        name: str | None = None,
        examples: Iterable[ExampleSource] = (),
        grammar: GrammarSource | None = None,
        executor: Callable[[str], Any] | None = None,
        *,
        normal_form: Callable[[str], Any] | None = None,
        dialect: Dialect | None = None,
        **parts: Unpack[DomainParts],
    ) -> None:
        values: dict[str, Any] = {**parts, "examples": examples}
        if "table" not in parts:
            table, given = given_values(name, grammar, dialect, executor, normal_form, parts)
            values = {"table": table, "given": given, "examples": given_examples(examples)}
        defaults = {part.name: None if part.default is MISSING else part.default for part in fields(self)}
        for key in values.keys() - defaults.keys():
            raise UnknownName("field", key, defaults)
        for key, default in defaults.items():
            object.__setattr__(self, key, values.get(key, default))
        if "table" not in parts:
            rewritten = tuple(self._rewritten(i, example) for i, example in enumerate(self.examples, 1))
            object.__setattr__(self, "examples", rewritten)

    @property
    def name(self) -> str:
        """The name in domain.toml."""
        return self.table.name

    @property
    def argument(self) -> str:
        """How a command names the domain: by its folder, unless that is installed or of a dataset."""
        in_folder = self.has_folder and not (self.is_benchmark or self.installed)
        return shlex.quote(str(self.folder)) if in_folder else self.name

    @cached_property
    def test_examples(self) -> tuple[Example, ...]:
        """The held-out examples of `test.jsonl`; none if there is no such file."""
        return self.read_examples(TEST) if self.find_data_file(TEST) else ()

    def out_of_scope(self, name: str = OUT_OF_SCOPE) -> tuple[Example, ...]:
        """Return the utterances of a file that no program expresses, as examples without a program."""
        found = read_examples(path, UTTERANCE) if (path := self.find_data_file(name)) else ()
        return tuple(Example(example.utterance, "", context=example.context) for example in found)

    @cached_property
    def spare_examples(self) -> tuple[Example, ...]:
        """Training examples beyond the pool, for choosing settings."""
        read = self.read_examples(EXAMPLES) if self.has_folder else ()
        return read[len(self.examples) + self.underivable :]

    @cached_property
    def data_notes(self) -> tuple[str, ...]:
        """What a report should say about the data, such as which training examples they are; usually nothing."""
        return read_data_notes(path) if (path := self.find_data_file(DATA_NOTES)) else ()

    def read_examples(self, name: str, required: Sequence[str] = PAIR) -> tuple[Example, ...]:
        """Return the examples of a file next to the examples, with programs as the constraint writes them.

        A program that cannot be written so is a `DomainError`; in a benchmark dataset it is left as it is.
        """
        path = self.data_file(name)
        return tuple(self._canonical(example, path, line) for line, example in numbered_examples(path, required))

    def _canonical(self, example: Example, path: Path, line: int) -> Example:
        try:
            return replace(example, program=self.constraint_kind.canonical_program(example.program))
        except InvalidProgram as error:
            if self.is_benchmark:
                return example
            shown = f"the program {error.message}\n{caret(example.program, error.at or 0)}"
            hint = f"{self.check_command} lists all such examples."
            raise DomainError(shown, path, line, hint=f"{error.hint} {hint}" if error.hint else hint) from None

    def _rewritten(self, number: int, example: Example) -> Example:
        """Return an example that is given in Python, with its program as the constraint writes it."""
        try:
            return replace(example, program=self.constraint_kind.canonical_program(example.program))
        except InvalidProgram as error:
            raise UsageError(f"the program of example {number} {error.message}", error.hint) from None

    def data_sha256(self, target: Target) -> str:
        """Return a hash of all training data for a target: utterances, contexts and outputs of the pool."""
        training = [(e.utterance, e.context, e.output(target)) for e in self.for_target(target).examples]
        return hashlib.sha256(json.dumps(training).encode()).hexdigest()

    @cached_property
    def description_lines(self) -> tuple[str, ...]:
        """The lines of the description: of the file `description.txt`, or else those that the constraint provides.

        The description in domain.toml comes before them.
        """
        path = self.find_data_file(DESCRIPTION) or self.find_file(DESCRIPTION)
        text = self.constraint_kind.description if path is None else read_text(path, DomainError)
        return tuple(line for line in text.split("\n") if line.strip())

    def description(self, lines: Sequence[str] | None = None) -> str:
        """Return what `{description}` in a prompt stands for, with some or all of its lines."""
        lines = self.description_lines if lines is None else lines
        return "\n".join(filter(None, (self.table.description.strip(), *lines)))

    @cached_property
    def constraint_kind(self) -> ConstraintKind:
        """The kind of constraint that domain.toml names."""
        return CONSTRAINT_KINDS[self.table.constraint.kind](self)

    @cached_property
    def language(self) -> Grammar | SynchronousGrammar | None:
        """The grammar of the folder, or the one induced from the examples; None if there is none."""
        return self.constraint_kind.grammar

    @property
    def grammar_path(self) -> Path:
        """The file or folder of the grammar; all files of the domain's own grammar are inside its folder."""
        path = self.folder / self.table.constraint.grammar
        if self.own_grammar:
            for file in (path, *path.rglob("*")):
                path_inside(self.folder, file.relative_to(self.folder))
        return path

    @property
    def grammar(self) -> Grammar:
        """The grammar of programs."""
        return self.side("program")

    def side(self, target: Target) -> Grammar:
        """Return the grammar of the outputs for a target; raise `UsageError` if there is none."""
        if self.language is None:
            raise UsageError(f"the domain {self.name} has no grammar", 'Set kind = "grammar" under [constraint].')
        if isinstance(self.language, SynchronousGrammar):
            return self.language.side("program" if target == "program" else "utterance")
        if target == "canonical":
            raise UsageError(
                f"the grammar of the domain {self.name} has no canonical utterances",
                "Write a synchronous grammar (grammar.scfg), or use the target `program`.",
            )
        return self.language

    @cached_property
    def translator(self) -> Translator | None:
        """The translator between canonical utterances and programs; None if the grammar is not synchronous.

        The shortest program is the best one.
        """
        return Translator(self.language) if isinstance(self.language, SynchronousGrammar) else None

    @cached_property
    def _learned_translator(self) -> Translator | None:
        return self.translator and self.translator.with_learned_scorer(
            example.program for example in self.examples
        )

    def scored_translator(self, scorer: ScorerName | None = None) -> Translator | None:
        """Return the translator with a scorer, by default the one in domain.toml; None if there is none."""
        learned = (scorer or self.table.constraint.scorer) == "learned"
        return self._learned_translator if learned else self.translator

    def for_target(self, target: Target) -> "Domain":
        """Return the domain with examples for a target: missing canonical utterances come from the grammar.

        Examples of a benchmark dataset that the grammar does not derive are excluded; in a domain's own folder
        such an example is an error.
        """
        if target == "program" or all(example.canonical for example in self.examples) or self.translator is None:
            return self
        usable = with_canonical(self, self.translator)
        return self.with_examples(usable, self.underivable + len(self.examples) - len(usable))

    def with_examples(self, examples: tuple[Example, ...], underivable: int) -> "Domain":
        """Return the domain with another pool of examples, and with what is loaded already."""
        changed = replace(self, examples=examples, underivable=underivable)
        loaded = {name: self.__dict__[name] for name in LOADED_ONCE if name in self.__dict__}
        changed.__dict__.update(loaded, constraint_kind=self.constraint_kind.for_domain(changed))
        return changed

    @property
    def check_command(self) -> str:
        """The command that checks the domain."""
        return f"`fewparse check {self.argument}{'' if self.own_grammar else f' --grammar {self.grammar_path}'}`"

    def without_foreign_canonical(self, example: Example) -> Example:
        """Return an example without its canonical utterance if that belongs to a replaced grammar."""
        return example if self.own_grammar else replace(example, canonical=None)

    @cached_property
    def fold(self) -> Fold | None:
        """The function that folds names for retrieval; None if domain.toml names no rules to fold."""
        names = self.table.retrieve.fold
        if not names:
            return None
        return folding(rules_of_words(self.grammar, names))

    def template(self, name: str | None = None) -> Template:
        """Return a prompt template by name, of the folder or a bundled one, with the domain's description."""
        name = name or self.table.prompt[self.table.target]
        path = self.find_file(name if name.endswith(".toml") else f"{name}.toml")
        if name != "domain" and path is not None:
            template = read_template(read_text(path, DomainError, SETTINGS_BYTES), path)
        else:
            template = bundled_template(name)
        return template.with_description(self.description()) if template.has_description else template

    def constraint(
        self, vocabulary: Vocabulary, target: Target, utterance: str = "", template: Template = PLAIN
    ) -> Constraint:
        """Return the constraint on outputs for an utterance, under a prompt template if one is given."""
        return self.constraint_kind.constraint(vocabulary, target, utterance, template)

    def server_grammar(
        self,
        target: Target,
        utterance: str = "",
        template: Template = PLAIN,
        notation: GrammarNotation = "gbnf",
    ) -> str:
        """Return the constraint on outputs in a notation of servers: GBNF, or Lark as llguidance reads it."""
        return self.constraint_kind.server_grammar(target, utterance, template, notation)

    def program_of(self, output: str, target: Target) -> str | None:
        """Return the program of an output; None if it has none, or is too long to parse."""
        if target == "program":
            return output
        if self.translator is None:
            return self._programs.get(output)
        try:
            return self._translate(output, self.translator)
        except LimitExceeded:
            return None

    def _translate(self, canonical: str, translator: Translator) -> str | None:
        """Return the best program; the scorer is only learned from the examples if there are several."""
        translation = translator.to_program(canonical, k=2)
        certain = translation.complete and len(translation.k_best) < 2
        scored = None if certain else self.scored_translator()
        return translation.best if scored is None else scored.to_program(canonical).best

    @cached_property
    def known_outputs(self) -> tuple[Example, ...]:
        """Programs with their canonical utterances: those of the file `strings`, or of the examples."""
        name = self.table.constraint.strings
        return self.examples if name is None else self.read_examples(name, ("program",))

    @cached_property
    def _programs(self) -> dict[str, str]:
        return {e.canonical: e.program for e in reversed(self.known_outputs) if e.canonical is not None}

    def check(self, target: Target | None = None, prompt: str | None = None, own_constraint: bool = True) -> None:
        """Load everything that a parse needs, so that mistakes are reported before a model is loaded.

        The constraint of the domain is not needed if `own_constraint` is false.
        """
        target = target or self.table.target
        needed = (*self.examples, *(self.known_outputs if self.constraint_kind.finite else ()))
        missing = target == "canonical" and not all(example.canonical for example in needed)
        if missing and not self.constraint_kind.synchronous:
            raise UsageError(f"the domain {self.name} lacks canonical utterances", "Use the target `program`.")
        if own_constraint:
            self.constraint_kind.check(target)
        _ = self.fold, self.template(prompt)
        if self.allow_code:
            _ = self.executor if self.executes else None, self.normal_form
