"""`fewparse grammar`: translate with a grammar, see what it derives, export it."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fewparse.cli import grammar_report
from fewparse.cli.console import FAILED, input_lines
from fewparse.cli.grammar_source import Chosen, GivenDialect, Place, choose, read_programs
from fewparse.cli.warnings import warn
from fewparse.errors import FewparseError, UsageError, caret
from fewparse.grammar.analysis.derivation import Branch, of_reading, of_tree
from fewparse.grammar.analysis.sampling import render as render_pairs
from fewparse.grammar.analysis.sampling import render_side
from fewparse.grammar.analysis.tree_svg import tree_svg, tree_text
from fewparse.grammar.export.notations import to_gbnf, to_lark
from fewparse.grammar.parsing.chart import ParseFailure
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.synchronous import Side, SynchronousGrammar
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.grammar.translation.translator import Translation, Translator

app = typer.Typer(help="Look at a grammar, translate with it, make or export one.", no_args_is_help=True)
app.command("check")(grammar_report.check)
app.command("stats")(grammar_report.stats)
app.command("induce")(grammar_report.induce_grammar)


@app.command()
def translate(
    grammar: Place,
    to: Annotated[Side, typer.Option(help="The side to translate to.")],
    alternatives: Annotated[int, typer.Option(help="How many further texts to give at most.", min=0)] = 10,
    scorer: Annotated[
        ScorerName | None, typer.Option(help="What makes a program the best; learned where there are examples.")
    ] = None,
    learn: Annotated[
        str | None, typer.Option(help="Programs to learn from: a domain, a .jsonl file, or lines.")
    ] = None,
    dialect: GivenDialect = None,
) -> None:
    """Translate the lines of standard input, taken as they are: one JSON object a line.

    A line without a translation has the output null and an error; derivations are null if there is no end of them.
    """
    translator = make_translator(choose(grammar, dialect), to, scorer, learn)
    way = translator.to_program if to == "program" else translator.to_utterance
    for _, line in input_lines():
        if isinstance(line, FewparseError):
            typer.echo(as_json(None, None, line.message))
            continue
        try:
            translation = way(line, alternatives + 1)
        except FewparseError as error:
            typer.echo(as_json(line, None, error.message))
        else:
            typer.echo(as_json(line, translation, translation.error))


def as_json(line: str | None, translation: Translation | None, error: str | None) -> str:
    """A translated line."""
    texts = translation.texts if translation else ()
    value: dict[str, Any] = {
        "input": line,
        "output": texts[0] if texts else None,
        "alternatives": list(texts[1:]),
        "derivations": translation.derivations if translation else 0,
        "error": error,
    }
    return json.dumps(value, ensure_ascii=False)


def make_translator(
    chosen: Chosen, to: Side, scorer: ScorerName | None = None, learn: str | None = None
) -> Translator:
    """A translator whose scorer has learned from the programs named, or from the domain's own.

    Where these were never fetched, nothing is learned, and whoever asks for programs is told.
    """
    paired = chosen.paired()
    if scorer == "shortest":
        return Translator(paired)
    if learn is not None and (programs := read_programs(learn)):
        return Translator(paired).learn(programs)
    if learn is None and chosen.unavailable is not None:
        if scorer == "learned":
            raise chosen.unavailable
        if to == "program":
            warn(f"the shortest program wins, not the likeliest: {chosen.unavailable}")
        return Translator(paired)
    if learn is None and chosen.domain is not None:
        return chosen.domain.scored_translator(scorer) or Translator(paired)
    if scorer == "learned":
        raise UsageError("there are no programs to learn from", "Name some with --learn.")
    return Translator(paired)


@app.command()
def render(
    grammar: Place,
    count: Annotated[int, typer.Option("--count", "-n", help="How many.", min=1)] = 10,
    seed: Annotated[int, typer.Option(help="Another seed gives others.", min=0)] = 0,
    depth: Annotated[int, typer.Option(help="How deep derivations may go freely.", min=1)] = 10,
    dialect: GivenDialect = None,
) -> None:
    """Print random well-formed pairs (or programs of a plain grammar), one JSON object a line."""
    chosen = choose(grammar, dialect)
    if isinstance(chosen.grammar, SynchronousGrammar):
        for pair in render_pairs(chosen.grammar, count, seed, depth):
            typer.echo(json.dumps({"utterance": pair.utterance, "program": pair.program}, ensure_ascii=False))
    else:
        for program in render_side(chosen.grammar, count, seed, depth):
            typer.echo(json.dumps({"program": program}, ensure_ascii=False))


@app.command()
def export(
    grammar: Place,
    notation: Annotated[Literal["lark", "gbnf"], typer.Option("--as", help="The notation to write.")],
    side: Annotated[Side, typer.Option(help="The side to export.")] = "program",
    dialect: GivenDialect = None,
) -> None:
    """Write one side of a grammar in the notation of Lark or of llama.cpp (GBNF)."""
    plain = choose(grammar, dialect).side(side)
    typer.echo(to_lark(plain) if notation == "lark" else to_gbnf(plain), nl=False)


@app.command()
def tree(
    grammar: Place,
    text: Annotated[str, typer.Argument(help="A text of that side, taken as it is.")],
    side: Annotated[Side, typer.Option(help="The side of the text.")] = "program",
    svg: Annotated[Path | None, typer.Option(help="Write a picture to this file.")] = None,
    dialect: GivenDialect = None,
) -> None:
    """Show the best derivation of a text as a tree, with the other side's text at each node where there is one."""
    chosen = choose(grammar, dialect)
    failure: ParseFailure | None = None
    shown: Branch | None = None
    if isinstance(chosen.grammar, SynchronousGrammar):
        translator = make_translator(chosen, "program" if side == "utterance" else "utterance")
        found = translator.to_program(text) if side == "utterance" else translator.to_utterance(text)
        failure = found.failure
        shown = of_reading(found.readings[0]) if found.readings else None
    else:
        forest = ForestParser(chosen.side(side)).parse(text)
        if isinstance(forest, ParseFailure):
            failure = forest
        else:
            shown = of_tree(next(forest.trees()))
    if shown is None:
        reason = failure.reason if failure else "has no counterpart"
        typer.echo(f"error: the text {reason}", err=True)
        typer.echo(caret(text, failure.at) if failure else text, err=True)
        raise typer.Exit(FAILED)
    if svg is None:
        typer.echo(tree_text(shown))
        return
    try:
        svg.write_text(tree_svg(shown), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{svg} cannot be written: {error.strerror}") from None
