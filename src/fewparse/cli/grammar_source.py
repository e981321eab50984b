"""Load the grammar or the programs that are named on the command line."""

import sys
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import typer

from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES, locations, numbered_examples
from fewparse.domains.load import find_domain, known_domains, load_domain
from fewparse.errors import DataUnavailable, SourceError, UnknownName, UsageError
from fewparse.files import bytes_of, exists, read_at_most, read_text, too_large, user_path
from fewparse.grammar.readers.load import Dialect, load_grammar
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import Side, SynchronousGrammar
from fewparse.limits import FILE_BYTES

GrammarArgument = Annotated[
    str,
    typer.Argument(metavar="GRAMMAR", help="Name of a domain, or path of a grammar file or grammar folder."),
]
DialectOption = Annotated[
    Dialect | None, typer.Option(help="Notation of a grammar file, if its suffix does not determine it.")
]


@dataclass(frozen=True)
class LoadedGrammar:
    """A grammar, and the domain that it belongs to, if any.

    `unavailable` is the reason why the domain's examples could not be loaded; None if they were.
    """

    grammar: Grammar | SynchronousGrammar
    domain: Domain | None
    unavailable: DataUnavailable | None = None

    def synchronous(self) -> SynchronousGrammar:
        """Return the synchronous grammar; raise `UsageError` for a plain one."""
        if isinstance(self.grammar, Grammar):
            raise UsageError(
                "this grammar has programs but no utterances",
                "Translation needs a synchronous grammar (.scfg).",
            )
        return self.grammar

    def side(self, side: Side) -> Grammar:
        """Return one side; a plain grammar is the program side."""
        if isinstance(self.grammar, SynchronousGrammar):
            return self.grammar.side(side)
        return self.grammar if side == "program" else self.synchronous().side(side)

    def as_written(self, text: str, side: Side) -> str:
        """Return a text as the grammar writes it, such as a query in its normal form; raise `InvalidProgram`."""
        if side == "utterance" or self.domain is None:
            return text
        return self.domain.constraint_kind.canonical_program(text)


def resolve_grammar(source: str, dialect: Dialect | None = None) -> LoadedGrammar:
    """Load the grammar of a bundled domain, a domain folder, a grammar folder or a grammar file.

    Raises `UnknownName` if there is no such domain and no such path.
    """
    path = user_path(source)
    if source in known_domains() or exists(path / "domain.toml"):
        try:
            domain = load_domain(source, allow_code=False)
        except DataUnavailable as error:
            domain = find_domain(source, allow_code=False)
            if domain.constraint_kind.needs_examples or domain.language is None:
                raise
            return LoadedGrammar(domain.language, domain, error)
        if domain.language is None:
            hint = f"Name another domain, or a grammar file. To check programs: fewparse grammar accepts {source}"
            raise UsageError(f"the domain {domain.name} has no grammar", hint)
        return LoadedGrammar(domain.language, domain)
    if not exists(path):
        raise UnknownName("grammar", source, known_domains(), "Or give the path of a grammar file or folder.")
    return LoadedGrammar(load_grammar(path, dialect), None)


class LocatedProgram(NamedTuple):
    """A program and where it is, for errors."""

    program: str
    location: str


def read_programs(source: str) -> list[LocatedProgram]:
    """Read the programs of a domain or a .jsonl file, or the lines of any other file (- = standard input)."""
    path = user_path(source)
    if source in known_domains() or exists(path / "domain.toml"):
        domain = load_domain(source, allow_code=False)
        where = locations(domain.data_file(EXAMPLES))
        return [LocatedProgram(e.program, where.get(e.key, source)) for e in domain.examples]
    if path.suffix == ".jsonl":
        found = numbered_examples(path, ("program",))
        return [LocatedProgram(example.program, f"{path}:{line}") for line, example in found]
    if source == "-":
        try:
            content = read_at_most(sys.stdin.buffer, bytes_of(FILE_BYTES))
            if content is None:
                raise UsageError(f"standard input is {too_large(FILE_BYTES)}", FILE_BYTES.hint)
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"standard input is not UTF-8 text (byte {error.start + 1})") from None
    else:
        text = read_text(path, SourceError)
    name = "standard input" if source == "-" else str(path)
    lines = enumerate(text.split("\n"), 1)
    return [LocatedProgram(line, f"{name}:{number}") for number, line in lines if line.strip()]
