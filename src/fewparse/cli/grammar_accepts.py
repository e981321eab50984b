"""`fewparse grammar accepts`: decide about texts."""

from typing import Annotated

import typer

from fewparse.cli.console import echo, input_lines
from fewparse.cli.grammar_source import DialectOption, resolve_grammar
from fewparse.domains.acceptance import Acceptor, DomainAcceptor, GrammarAcceptor, SchemaAcceptor, Verdict
from fewparse.domains.load import find_domain, known_domains, load_domain
from fewparse.errors import FewparseError
from fewparse.files import exists, user_path
from fewparse.grammar.readers.load import Dialect
from fewparse.grammar.synchronous import Side
from fewparse.json_schema.document import read_schema
from fewparse.text import to_json


def accepts(
    grammar: Annotated[
        str,
        typer.Argument(
            metavar="GRAMMAR",
            help="Name of a domain, or path of a grammar file, a grammar folder or a JSON Schema (.json).",
        ),
    ],
    side: Annotated[Side, typer.Option(help="Side of the texts.")] = "program",
    dialect: DialectOption = None,
) -> None:
    """Report for each line of standard input whether it is well-formed, as one JSON object per line.

    `position` is the offset from which the line is not well-formed, and `expected` what could follow there.
    JSON may have any layout and its keys any order; programs of a domain are written like those of its examples.
    The exit code is 0 if the grammar or schema can be used, also if lines are rejected.
    """
    acceptor = open_acceptor(grammar, side, dialect)
    for _, line in input_lines():
        if isinstance(line, FewparseError):
            echo(as_json(None, Verdict(False, error=line.message)))
            continue
        try:
            verdict = acceptor.verdict(line)
        except FewparseError as error:
            verdict = Verdict(False, error=error.message)
        echo(as_json(line, verdict))


def open_acceptor(source: str, side: Side, dialect: Dialect | None) -> Acceptor:
    """Return what decides about texts of a domain, a grammar or a schema."""
    path = user_path(source)
    if source in known_domains() or exists(path / "domain.toml"):
        domain = find_domain(source, allow_code=False)
        if domain.constraint_kind.needs_examples:
            domain = load_domain(source, allow_code=False)
        return DomainAcceptor(domain, "program" if side == "program" else "canonical")
    if path.suffix == ".json" and dialect is None:
        return SchemaAcceptor(read_schema(path))
    return GrammarAcceptor(resolve_grammar(source, dialect).side(side))


def as_json(line: str | None, verdict: Verdict) -> str:
    """Return the JSON object of a line."""
    return to_json({"input": line} | verdict._asdict())
