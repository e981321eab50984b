"""`fewparse grammar`: inspect a grammar, translate and sample with it, induce or export one."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fewparse.cli import grammar_accepts, grammar_report
from fewparse.cli.console import FAILED, echo, input_lines, warn
from fewparse.cli.grammar_source import (
    DialectOption,
    GrammarArgument,
    LoadedGrammar,
    read_programs,
    resolve_grammar,
)
from fewparse.errors import FewparseError, UsageError, caret
from fewparse.files import os_reason, user_path
from fewparse.grammar.analysis.derivation import DerivationTree, from_derivation, from_parse_tree
from fewparse.grammar.analysis.sampling import sample_pairs, sample_sentences
from fewparse.grammar.analysis.tree_svg import tree_svg, tree_text
from fewparse.grammar.export.notations import to_gbnf, to_lark
from fewparse.grammar.parsing.chart import ParseFailure
from fewparse.grammar.parsing.forest import ForestParser
from fewparse.grammar.synchronous import Side, SynchronousGrammar
from fewparse.grammar.translation.scorers import ScorerName
from fewparse.grammar.translation.translator import Translation, Translator
from fewparse.text import to_json

app = typer.Typer(help="Inspect, translate with, sample, induce or export a grammar.", no_args_is_help=True)
app.command("accepts")(grammar_accepts.accepts)
app.command("check")(grammar_report.check)
app.command("stats")(grammar_report.stats)
app.command("induce")(grammar_report.induce_grammar)


@app.command()
def translate(
    grammar: GrammarArgument,
    to: Annotated[Side, typer.Option(help="Side to translate to.")],
    alternatives: Annotated[
        int, typer.Option(help="Maximum number of other translations to print after the best one.", min=0)
    ] = 10,
    scorer: Annotated[
        ScorerName | None,
        typer.Option(
            help="Ranking of programs (default: the domain's scorer, `learned` with --learn, or `shortest`)."
        ),
    ] = None,
    learn: Annotated[
        str | None,
        typer.Option(
            help="Programs from which to learn the scorer: name of a domain, a .jsonl file, or a text file."
        ),
    ] = None,
    dialect: DialectOption = None,
) -> None:
    """Translate each line of standard input, including its leading blanks, to one JSON object.

    Queries of an SQL domain are brought into its normal form first.
    For a line without a translation, `output` is null and `error` is the reason.
    `derivations` is null if the line has infinitely many.
    """
    loaded = resolve_grammar(grammar, dialect)
    translator = make_translator(loaded, to, scorer, learn)
    translate_line = translator.to_program if to == "program" else translator.to_utterance
    for _, line in input_lines():
        if isinstance(line, FewparseError):
            echo(as_json(None, None, line.message))
            continue
        try:
            text = loaded.as_written(line, "program" if to == "utterance" else "utterance")
            translation = translate_line(text, alternatives + 1)
        except FewparseError as error:
            echo(as_json(line, None, error.message))
        else:
            echo(as_json(line, translation, translation.error))


def as_json(line: str | None, translation: Translation | None, error: str | None) -> str:
    """Return the JSON object of a translated line."""
    texts = translation.texts if translation else ()
    value: dict[str, Any] = {
        "input": line,
        "output": texts[0] if texts else None,
        "alternatives": list(texts[1:]),
        "derivations": translation.derivation_count if translation else 0,
        "error": error,
    }
    return to_json(value)


def make_translator(
    loaded: LoadedGrammar, to: Side, scorer: ScorerName | None = None, learn: str | None = None
) -> Translator:
    """Return a translator whose scorer is learned from the programs of `learn` or from the domain's examples.

    If the examples of the domain are not downloaded, the shortest program is preferred, with a warning for
    translation to programs; an explicit `learned` raises `DataUnavailable`.
    """
    grammar = loaded.synchronous()
    if scorer == "shortest":
        return Translator(grammar)
    if learn is not None and (programs := read_programs(learn)):
        return Translator(grammar).with_learned_scorer(located.program for located in programs)
    if learn is None and loaded.unavailable is not None:
        if scorer == "learned":
            raise loaded.unavailable
        if to == "program":
            warn(f"programs are ranked by length, not by probability: {loaded.unavailable}")
        return Translator(grammar)
    if learn is None and loaded.domain is not None:
        return loaded.domain.scored_translator(scorer) or Translator(grammar)
    if scorer == "learned":
        raise UsageError("there are no programs to learn the scorer from", "Give some with --learn.")
    return Translator(grammar)


@app.command()
def render(
    grammar: GrammarArgument,
    count: Annotated[int, typer.Option("--count", "-n", help="Number of samples.", min=1)] = 10,
    seed: Annotated[int, typer.Option(help="Random seed; equal seeds give equal samples.", min=0)] = 0,
    depth: Annotated[
        int, typer.Option(help="Depth beyond which derivations end as soon as possible.", min=1)
    ] = 10,
    dialect: DialectOption = None,
) -> None:
    """Print random pairs of a synchronous grammar, or programs of a plain one, as one JSON object per line."""
    loaded = resolve_grammar(grammar, dialect)
    if isinstance(loaded.grammar, SynchronousGrammar):
        for pair in sample_pairs(loaded.grammar, count, seed, depth):
            echo(to_json({"utterance": pair.utterance, "program": pair.program}))
    else:
        for program in sample_sentences(loaded.grammar, count, seed, depth):
            echo(to_json({"program": program}))


@app.command()
def export(
    grammar: GrammarArgument,
    notation: Annotated[Literal["lark", "gbnf"], typer.Option("--as", help="Notation to write.")],
    side: Annotated[Side, typer.Option(help="Side to export.")] = "program",
    dialect: DialectOption = None,
) -> None:
    """Print one side of a grammar in the notation of Lark or of llama.cpp (GBNF)."""
    plain = resolve_grammar(grammar, dialect).side(side)
    typer.echo(to_lark(plain) if notation == "lark" else to_gbnf(plain), nl=False)


@app.command()
def tree(
    grammar: GrammarArgument,
    text: Annotated[str, typer.Argument(help="Text of the given side, including its leading blanks.")],
    side: Annotated[Side, typer.Option(help="Side of the text.")] = "program",
    svg: Annotated[Path | None, typer.Option(help="Write the tree as an SVG picture to this file.")] = None,
    dialect: DialectOption = None,
) -> None:
    """Show the best derivation of a text as a tree; nodes of a synchronous grammar show their translation."""
    loaded = resolve_grammar(grammar, dialect)
    text = loaded.as_written(text, side)
    failure: ParseFailure | None = None
    derivation: DerivationTree | None = None
    if isinstance(loaded.grammar, SynchronousGrammar):
        translator = make_translator(loaded, "program" if side == "utterance" else "utterance")
        translation = translator.to_program(text) if side == "utterance" else translator.to_utterance(text)
        failure = translation.failure
        derivation = from_derivation(translation.k_best[0]) if translation.k_best else None
    else:
        forest = ForestParser(loaded.side(side)).parse(text)
        if isinstance(forest, ParseFailure):
            failure = forest
        else:
            derivation = from_parse_tree(next(forest.trees()))
    if derivation is None:
        reason = failure.reason if failure else "has no translation"
        echo(f"error: the text {reason}", err=True)
        echo(caret(text, failure.at) if failure else text, err=True)
        raise typer.Exit(FAILED)
    if svg is None:
        echo(tree_text(derivation))
        return
    try:
        user_path(svg).write_text(tree_svg(derivation), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{svg} cannot be written: {os_reason(error)}") from None
