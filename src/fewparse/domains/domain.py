"""A domain is a folder: `domain.toml`, `examples.jsonl`, a grammar, and optionally an executor and a prompt."""

import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from fewparse.constrain.cfg import ContextFree
from fewparse.constrain.copying import copy_spans
from fewparse.constrain.state import Constraint
from fewparse.constrain.trie import Trie
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.domains.schema import DomainTable, read_domain_table, read_text
from fewparse.errors import DomainError, ExecutionError, UnknownName
from fewparse.example import Example, Target, is_unicode
from fewparse.grammar.ebnf import read_grammar
from fewparse.grammar.rules import Grammar
from fewparse.prompt import Template, bundled_template, read_template
from fewparse.retrieve.folding import Fold, folding, word_kinds
from fewparse.vocabulary import Vocabulary

REQUIRED: dict[Target, tuple[str, ...]] = {
    "program": ("utterance", "program"),
    "canonical": ("utterance", "program", "canonical"),
}


@dataclass(frozen=True)
class Domain:
    """What to parse into: settings, examples and, on demand, everything that the folder holds."""

    folder: Path
    table: DomainTable
    examples: tuple[Example, ...]

    @property
    def name(self) -> str:
        """The name that the folder gives itself."""
        return self.table.name

    @cached_property
    def test_examples(self) -> tuple[Example, ...]:
        """The held-out examples of `test.jsonl`; none where there is no such file."""
        path = self.folder / "test.jsonl"
        return read_examples(path) if path.exists() else ()

    @cached_property
    def grammar(self) -> Grammar:
        """The grammar of programs."""
        path = self.folder / self.table.constraint.grammar
        return read_grammar(read_text(path), path, self.table.constraint.start)

    @cached_property
    def fold(self) -> Fold | None:
        """How retrieval folds names of one kind into one word, where the domain asks for it."""
        if not self.table.prompt.fold:
            return None
        for name in self.table.prompt.fold:
            if name not in self.grammar.rules:
                raise UnknownName("rule to fold", name, self.grammar.rules)
        return folding(word_kinds(self.grammar, self.table.prompt.fold))

    def template(self, name: str | None = None) -> Template:
        """A prompt template: a file of the folder, or a bundled one."""
        name = name or self.table.prompt.template
        path = self.folder / (name if name.endswith(".toml") else f"{name}.toml")
        if name != "domain" and path.exists():
            return read_template(read_text(path), path)
        return bundled_template(name)

    def constraint(self, vocabulary: Vocabulary, target: Target, lead: str, utterance: str) -> Constraint:
        """The condition on outputs, for this utterance where free text is copied from it."""
        chosen = self.table.constraint
        if chosen.kind == "none":
            return Unconstrained(vocabulary, lead.encode())
        if chosen.kind == "strings":
            return Trie((e.output(target) for e in self.examples), vocabulary, lead)
        return ContextFree(self.grammar, vocabulary, lead, chosen.copy_rules, utterance)

    @property
    def constraint_depends_on_utterance(self) -> bool:
        """Whether a constraint serves for one utterance only."""
        return self.table.constraint.kind == "grammar" and bool(self.table.constraint.copy_rules)

    def program_of(self, output: str, target: Target) -> str | None:
        """The program that an output stands for."""
        return output if target == "program" else self._programs.get(output)

    @cached_property
    def _programs(self) -> dict[str, str]:
        return {e.canonical: e.program for e in reversed(self.examples) if e.canonical is not None}

    @cached_property
    def executor(self) -> Callable[[str], Any] | None:
        """The function that executes programs, loaded on first use."""
        if self.table.executor is None:
            return None
        place, _, name = self.table.executor.partition(":")
        path = self.folder / "domain.toml"
        try:
            module = load_file(self.folder / place) if place.endswith(".py") else importlib.import_module(place)
        except Exception as error:
            raise DomainError(f"the executor {place} cannot be loaded: {error!r}", path) from error
        function = getattr(module, name, None)
        if not callable(function):
            raise DomainError(f"the executor {place} has no function `{name}`", path)
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

    def check(self, template: str | None = None) -> None:
        """Read all that a parse will need, so that mistakes show before a model is loaded."""
        if self.table.constraint.kind == "grammar":
            copy_spans(self.grammar, self.table.constraint.copy_rules, "")
        _ = self.fold, self.template(template), self.executor


def bundled_domains() -> dict[str, Path]:
    """The domains that come with fewparse, by name."""
    root = Path(str(resources.files("fewparse.domains")))
    return {folder.name: folder for folder in sorted(root.iterdir()) if (folder / "domain.toml").exists()}


def load_domain(place: str | Path) -> Domain:
    """A domain by the name of a bundled one, or by the path of its folder."""
    bundled = bundled_domains()
    folder = bundled.get(str(place)) or Path(os.path.expanduser(place))
    if not folder.is_dir():
        raise UnknownName("domain", str(place), bundled, "Or give the path of a domain folder.")
    path = folder / "domain.toml"
    if not path.exists():
        raise DomainError(
            "the folder has no domain.toml", folder, hint="`fewparse new NAME` makes a domain folder."
        )
    table = read_domain_table(path)
    examples = read_examples(folder / "examples.jsonl", REQUIRED[table.target])
    if not examples:
        raise DomainError("there are no examples", folder / "examples.jsonl")
    return Domain(folder, table, examples)


def read_examples(path: Path, required: Sequence[str] = REQUIRED["program"]) -> tuple[Example, ...]:
    """Examples of a JSON-lines file; every mistake is a `DomainError` with line and column."""
    lines = enumerate(read_text(path).split("\n"), 1)
    return tuple(read_example(text, number, path, required) for number, text in lines if text.strip())


def read_example(text: str, number: int, path: Path, required: Sequence[str]) -> Example:
    """One line: an object with `utterance`, `program` and optionally `canonical`, `context`, all strings."""
    source = "\n" * (number - 1) + text
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DomainError(f"not valid JSON: {error.msg}", path, number, error.colno, source) from None
    except (ValueError, RecursionError) as error:
        raise DomainError(f"not readable JSON: {error}", path, number) from None
    if not isinstance(value, dict):
        raise DomainError("expected an object with `utterance` and `program`", path, number, 1, source)
    known = Example.__dataclass_fields__
    for key, field in value.items():
        column = text.find(json.dumps(key)) + 1 or None
        if key not in known:
            hint = UnknownName("key", key, known).hint
            raise DomainError(f"unknown key {key!r}", path, number, column, source, hint)
        if not isinstance(field, str):
            raise DomainError(f"`{key}` is a string", path, number, column, source)
        if not is_unicode(field):
            raise DomainError(f"`{key}` has half a character (a lone surrogate)", path, number, column)
    for key in required:
        if not value.get(key, "").strip():
            raise DomainError(f"`{key}` is missing or empty", path, number, 1, source)
    return Example(**value)


def load_file(path: Path) -> Any:
    """A Python file of a domain folder as a module."""
    spec = importlib.util.spec_from_file_location(f"fewparse_domain_{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no Python file at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
