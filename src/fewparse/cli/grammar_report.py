"""`fewparse grammar check | stats | induce`: what a grammar is like, and one made out of programs."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

import typer

from fewparse.cli.check import show_findings
from fewparse.cli.console import FAILED, err, input_lines, out
from fewparse.cli.grammar_source import GivenDialect, Place, choose, read_programs
from fewparse.errors import FewparseError
from fewparse.grammar.analysis.lint import grammar_findings
from fewparse.grammar.analysis.statistics import Ambiguity, Statistics, ambiguity, statistics
from fewparse.grammar.export.notations import to_lark
from fewparse.grammar.induction.induce import Merge, coverage, induce
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.synchronous import Side

Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]
MISSED = 5


def check(grammar: Place, as_json: Json = False, dialect: GivenDialect = None) -> None:
    """Say what can never be used, what has no end and what cannot be told apart; exit with 1 on an error."""
    findings = list(grammar_findings(choose(grammar, dialect).grammar))
    failed = any(finding.level == "error" for finding in findings)
    if as_json:
        shown: dict[str, Any] = {"passed": not failed, "findings": [asdict(finding) for finding in findings]}
        typer.echo(json.dumps(shown, ensure_ascii=False))
    else:
        show_findings(findings)
        out.print("failed" if failed else "passed")
    if failed:
        raise typer.Exit(FAILED)


def stats(
    grammar: Place,
    lines: Annotated[bool, typer.Option("--lines", help="Count derivations of standard input's lines.")] = False,
    side: Annotated[Side, typer.Option(help="The side of those lines.")] = "program",
    as_json: Json = False,
    dialect: GivenDialect = None,
) -> None:
    """Show the size and the shape of a grammar and, with --lines, how ambiguous texts are."""
    chosen = choose(grammar, dialect)
    found = statistics(chosen.grammar)
    counted = None
    if lines:
        texts = [line for _, line in input_lines() if not isinstance(line, FewparseError)]
        counted = ambiguity(ForestParser(chosen.side(side)), texts)
    if as_json:
        shown = asdict(found) | ({"lines": as_dict(counted)} if counted else {})
        typer.echo(json.dumps(shown, ensure_ascii=False, default=str))
    else:
        show_statistics(found)
        if counted:
            show_ambiguity(counted)


def as_dict(counted: Ambiguity) -> dict[str, Any]:
    """The ambiguity of lines as a JSON object."""
    return {
        "derived": len(counted.derived),
        "refused": len(counted.refused),
        "mean_derivations": counted.mean,
        "most": counted.most._asdict() if counted.most else None,
        "derivations": [line.derivations for line in counted.lines],
    }


def show_statistics(found: Statistics) -> None:
    """Figures for people, a column a side."""
    ways = f", {found.pairings} ways to say them" if found.pairings else ""
    out.print(f"{found.rules} rules{ways}; least depth of a sentence {found.least_depth}")
    for name, side in found.sides.items():
        out.print(f"{name}", style="bold")
        out.print(f"  {side.productions} productions of {side.names} names; {side.symbols} symbols")
        out.print(
            f"  {side.literals} literals, {side.classes} classes; {side.shortest}-{side.longest} symbols each"
        )
        kinds = Counter(kind for kinds in side.recursive.values() for kind in kinds)
        out.print("  recursive: " + (", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"))
        useless = {"undefined": side.undefined, "unproductive": side.unproductive, "unreachable": side.unreachable}
        out.print("  " + ", ".join(f"{len(names)} {what}" for what, names in useless.items()))
        out.print(f"  {len(side.nullable)} may be nothing, {len(side.cycles)} cycles")


def show_ambiguity(counted: Ambiguity) -> None:
    """How many derivations lines have."""
    out.print("lines", style="bold")
    out.print(f"  {len(counted.derived)} derived, {len(counted.refused)} not")
    if counted.most is not None:
        often = counted.most.derivations
        mean = "endless" if counted.mean is None else f"{counted.mean:.1f}"
        most = "endlessly many" if often is None else str(often)
        out.print(f"  derivations: mean {mean}; most {most}, of {counted.most.text}", markup=False)


def induce_grammar(
    programs: Annotated[str, typer.Argument(help="A domain, a .jsonl file with `program`, or lines (- = stdin).")],
    merge: Annotated[Merge, typer.Option(help="How far to generalise, from strict to open.")] = "typed",
    held_out: Annotated[str | None, typer.Option(help="Programs to measure the coverage of.")] = None,
) -> None:
    """Make a grammar out of example programs (S-expressions) and write it in Lark's notation."""
    induced = induce(read_programs(programs), merge)
    typer.echo(to_lark(induced.grammar), nl=False)
    literals = f" and literals ({', '.join(induced.literals)})" if induced.literals else ""
    err.print(
        f"{induced.programs} programs: {induced.functions} functions, {induced.constants} constants{literals}",
        markup=False,
    )
    if held_out is not None:
        covered = coverage(induced.grammar, read_programs(held_out))
        total = covered.derived + len(covered.missed)
        err.print(f"covers {covered.derived} of {total} held-out programs ({covered.share:.1%})")
        for program in covered.missed[:MISSED]:
            err.print(f"  not {program}", markup=False)
