"""`fewparse check`: check a domain's grammar, examples and adapters."""

import json
from collections.abc import Iterable
from typing import Annotated

import typer

from fewparse.cli import options
from fewparse.cli.console import FAILED, opened_model, out
from fewparse.domains.check import check_domain
from fewparse.domains.load import load_domain
from fewparse.errors import ModelError
from fewparse.grammar.analysis.lint import Finding, Level
from fewparse.lm.load import EMBEDDED
from fewparse.vocabulary import Vocabulary

STYLES: dict[Level, str] = {"error": "bold red", "warning": "yellow", "note": "dim"}


def check(
    domain: options.Domain,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings too.")] = False,
    model: Annotated[
        str,
        typer.Option(
            help="Model whose vocabulary must spell all texts: embedded | gguf:PATH | hf:PATH_OR_NAME | none."
        ),
    ] = EMBEDDED,
    grammar: options.Grammar = None,
    copy: options.Copy = None,
    data: options.Data = None,
) -> None:
    """Check a domain: its grammar against its examples, round trips, ambiguity, copy spans, leaks, vocabulary.

    The exit code is 1 if there is an error.
    """
    loaded = load_domain(domain, data, grammar=grammar, copy=copy)
    loaded.check()
    vocabulary, unknown = find_vocabulary(model)
    report = check_domain(loaded, vocabulary)
    failed = not report.passed or (strict and any(finding.level == "warning" for finding in report.findings))
    if as_json:
        typer.echo(json.dumps({**report.as_dict(), "vocabulary_unknown": unknown}, ensure_ascii=False))
    else:
        show_findings(report.findings)
        if unknown:
            out.print(f"note: the vocabulary was not checked: {unknown}", style="dim", markup=False)
        checked = ", ".join(f"{count} {what}" for what, count in report.checked.items())
        out.print(f"{report.domain}: {'failed' if failed else 'passed'} ({checked})", markup=False)
    if failed:
        raise typer.Exit(FAILED)


def find_vocabulary(model: str) -> tuple[Vocabulary | None, str | None]:
    """Return the vocabulary of a model, or the reason why it is unknown."""
    if model == "none":
        return None, "no model was named"
    try:
        with opened_model(model) as opened:
            return opened.vocabulary, None
    except ModelError as error:
        if model != EMBEDDED:
            raise
        return None, error.message


def show_findings(findings: Iterable[Finding]) -> None:
    """Print the findings."""
    for finding in findings:
        out.print(f"{finding.level}: ", style=STYLES[finding.level], end="")
        place = f"{finding.location}: " if finding.location else ""
        out.print(f"{place}{finding.kind}: {finding.message}", markup=False)
