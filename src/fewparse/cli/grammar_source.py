"""Which grammar, and which programs, a command means."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fewparse.domains.domain import Domain
from fewparse.domains.examples import numbered_examples
from fewparse.domains.load import find_domain, known_domains, load_domain
from fewparse.errors import DataUnavailable, SourceError, UnknownName, UsageError
from fewparse.files import read_text
from fewparse.grammar.readers.load import Dialect, load_grammar
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import Side, SynchronousGrammar

Place = Annotated[str, typer.Argument(metavar="GRAMMAR", help="A domain's name, or a grammar folder or file.")]
GivenDialect = Annotated[Dialect | None, typer.Option(help="Of a file whose suffix does not say it.")]


@dataclass(frozen=True)
class Chosen:
    """A grammar, and the domain that it belongs to where there is one.

    `unavailable` says why the domain's examples are not there, if they are not.
    """

    grammar: Grammar | SynchronousGrammar
    domain: Domain | None
    unavailable: DataUnavailable | None = None

    def paired(self) -> SynchronousGrammar:
        """The grammar, if it has two sides."""
        if isinstance(self.grammar, Grammar):
            raise UsageError(
                "this grammar has programs and no utterances", "Only a synchronous one (.scfg) translates."
            )
        return self.grammar

    def side(self, side: Side) -> Grammar:
        """One side; a plain grammar is a program side."""
        if isinstance(self.grammar, SynchronousGrammar):
            return self.grammar.side(side)
        return self.grammar if side == "program" else self.paired().side(side)


def choose(place: str, dialect: Dialect | None = None) -> Chosen:
    """A bundled domain's grammar by its name, or the grammar of a domain folder, a grammar folder or a file."""
    path = Path(place).expanduser()
    if place in known_domains() or (path / "domain.toml").exists():
        try:
            domain = load_domain(place)
        except DataUnavailable as error:
            domain = find_domain(place)
            if domain.constraint_kind.needs_examples or domain.language is None:
                raise
            return Chosen(domain.language, domain, error)
        if domain.language is None:
            raise UsageError(f"the domain {domain.name} has no grammar", "Name another domain, or a grammar file.")
        return Chosen(domain.language, domain)
    if not path.exists():
        raise UnknownName("grammar", place, known_domains(), "Or give the path of a grammar file or folder.")
    return Chosen(load_grammar(path, dialect), None)


def read_programs(place: str) -> list[str]:
    """A domain's programs, those of a .jsonl file, or the lines of any other file (- = standard input)."""
    path = Path(place).expanduser()
    if place in known_domains() or (path / "domain.toml").exists():
        return [example.program for example in load_domain(place).examples]
    if path.suffix == ".jsonl":
        return [example.program for _, example in numbered_examples(path, ("program",))]
    if place == "-":
        try:
            text = sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"standard input is not UTF-8 text (byte {error.start + 1})") from None
    else:
        text = read_text(path, SourceError)
    return [line for line in text.split("\n") if line.strip()]
