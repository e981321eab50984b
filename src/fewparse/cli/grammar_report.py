"""`fewparse grammar check | stats | induce`: report on a grammar, or induce one from programs."""

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

import typer

from fewparse.cli.console import FAILED, echo, err, input_lines, out
from fewparse.cli.domain import show_findings
from fewparse.cli.grammar_source import DialectOption, GrammarArgument, read_programs, resolve_grammar
from fewparse.errors import FewparseError
from fewparse.grammar.analysis.lint import lint_grammar
from fewparse.grammar.analysis.statistics import Ambiguity, Statistics, ambiguity, statistics
from fewparse.grammar.export.notations import to_lark
from fewparse.grammar.induction.induce import MergeLevel, coverage, induce, wider_level
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.synchronous import Side
from fewparse.text import to_json

Json = Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")]
MAX_MISSED = 5


def check(grammar: GrammarArgument, as_json: Json = False, dialect: DialectOption = None) -> None:
    """Report useless names, cycles and ambiguous utterances of a grammar.

    The exit code is 1 if there is an error.
    """
    findings = list(lint_grammar(resolve_grammar(grammar, dialect).grammar))
    failed = any(finding.level == "error" for finding in findings)
    if as_json:
        report: dict[str, Any] = {"passed": not failed, "findings": [asdict(finding) for finding in findings]}
        echo(to_json(report))
    else:
        show_findings(findings)
        out.print("failed" if failed else "passed")
    if failed:
        raise typer.Exit(FAILED)


def stats(
    grammar: GrammarArgument,
    lines: Annotated[
        bool, typer.Option("--lines", help="Also count the derivations of each line of standard input.")
    ] = False,
    side: Annotated[Side, typer.Option(help="Side of the grammar to which the lines belong.")] = "program",
    as_json: Json = False,
    dialect: DialectOption = None,
) -> None:
    """Show the size and structure of a grammar and, with --lines, how ambiguous it is on texts."""
    loaded = resolve_grammar(grammar, dialect)
    found = statistics(loaded.grammar)
    counted = None
    if lines:
        texts = [line for _, line in input_lines() if not isinstance(line, FewparseError)]
        counted = ambiguity(ForestParser(loaded.side(side)), texts)
    if as_json:
        report = asdict(found) | ({"lines": ambiguity_report(counted)} if counted else {})
        echo(to_json(report, default=str))
    else:
        show_statistics(found)
        if counted:
            show_ambiguity(counted)


def ambiguity_report(counted: Ambiguity) -> dict[str, Any]:
    """Return the ambiguity of lines as a JSON object."""
    return {
        "derived": len(counted.derived),
        "rejected": len(counted.rejected),
        "mean_derivations": counted.mean_derivations,
        "most_ambiguous": counted.most_ambiguous._asdict() if counted.most_ambiguous else None,
        "derivations": [line.derivations for line in counted.lines],
    }


def show_statistics(found: Statistics) -> None:
    """Print the figures of a grammar, a section per side."""
    pairings = f", {found.pairings} utterance patterns" if found.pairings else ""
    out.print(f"{found.rules} rules{pairings}; least depth of a derivation: {found.min_depth}")
    for name, side in found.sides.items():
        out.print(f"{name}", style="bold")
        out.print(f"  {side.productions} productions of {side.names} nonterminals; {side.symbols} symbols")
        out.print(
            f"  {side.literals} literals, {side.classes} character classes; "
            f"{side.min_symbols}-{side.max_symbols} symbols per production"
        )
        kinds = Counter(kind for kinds in side.recursive.values() for kind in kinds)
        out.print("  recursive: " + (", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"))
        useless = {"undefined": side.undefined, "unproductive": side.unproductive, "unreachable": side.unreachable}
        out.print("  " + ", ".join(f"{len(names)} {kind}" for kind, names in useless.items()))
        out.print(f"  {len(side.nullable)} nullable, {len(side.cycles)} cycles")


def show_ambiguity(counted: Ambiguity) -> None:
    """Print how many derivations the lines have."""
    out.print("lines", style="bold")
    out.print(f"  {len(counted.derived)} derived, {len(counted.rejected)} not derived")
    if counted.most_ambiguous is not None:
        largest = counted.most_ambiguous.derivations
        mean = "infinite" if counted.mean_derivations is None else f"{counted.mean_derivations:.1f}"
        maximum = "infinite" if largest is None else str(largest)
        line = counted.most_ambiguous.text
        out.print(f"  derivations per line: mean {mean}, maximum {maximum} ({line})", markup=False)


def induce_grammar(
    programs: Annotated[
        str,
        typer.Argument(
            help="Name of a domain, a .jsonl file with `program`, or a file with one program per line (- = stdin)."
        ),
    ],
    merge: Annotated[
        MergeLevel, typer.Option(help="Degree of generalisation, from strict (least) to open (most).")
    ] = "typed",
    held_out: Annotated[
        str | None,
        typer.Option(help="Held-out programs, in the same form; report how many of them the grammar covers."),
    ] = None,
) -> None:
    """Induce a grammar from example programs (S-expressions) and print it in Lark notation."""
    given = read_programs(programs)
    texts = [located.program for located in given]
    induced = induce(texts, merge, locate=lambda number: given[number - 1].location)
    typer.echo(to_lark(induced.grammar), nl=False)
    literals = f" and literals ({', '.join(induced.literals)})" if induced.literals else ""
    err.print(
        f"{induced.programs} programs: {induced.functions} functions, {induced.constants} constants{literals}",
        markup=False,
    )
    if held_out is not None:
        others = [located.program for located in read_programs(held_out)]
        covered = coverage(induced.grammar, others)
        total = covered.derived + len(covered.missed)
        err.print(f"covers {covered.derived} of {total} held-out programs ({covered.share:.1%})")
        for program in covered.missed[:MAX_MISSED]:
            err.print(f"  not covered: {program}", markup=False)
        if covered.missed and (wider := wider_level(texts, merge, others)):
            err.print(f"  --merge {wider[0]} covers {wider[1].derived} of {total}", markup=False)
