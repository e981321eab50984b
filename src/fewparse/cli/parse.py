"""`fewparse parse`: parse utterances into programs."""

from collections.abc import Iterator
from typing import Annotated

import typer

from fewparse.cli import options
from fewparse.cli.confirm import EXIT_CODES, Ending, show_outcome
from fewparse.cli.console import (
    FAILED,
    echo,
    input_lines,
    named_model,
    opened_model,
    out,
    show_error,
    warn,
)
from fewparse.cli.explain import explain
from fewparse.cli.remote import remote_settings
from fewparse.cli.trust import code_allowed, warn_of_code
from fewparse.cli.warnings import warn_of_gaps
from fewparse.errors import FewparseError, UsageError
from fewparse.example import Parse, check_utterance
from fewparse.lm.load import EMBEDDED
from fewparse.options import prepare
from fewparse.parser import Parser
from fewparse.prompt import Template
from fewparse.text import is_unicode, to_json

Line = tuple[int, str | UsageError]


def parse(
    domain: options.Domain,
    utterance: Annotated[
        str | None, typer.Argument(help="Utterance to parse; by default, every line of standard input.")
    ] = None,
    context: Annotated[
        str,
        options.option(
            options.INPUT, "Dialogue before the utterance; the prompt template must contain {context}."
        ),
    ] = "",
    target: options.Target = None,
    pool: options.Pool = None,
    data: options.Data = None,
    paper: options.Paper = None,
    allow_code: options.AllowCode = False,
    decoder: options.Decoder = None,
    width: options.Width = None,
    temperature: options.Temperature = None,
    max_tokens: options.MaxTokens = None,
    rounds: options.Rounds = None,
    margin: options.Margin = None,
    alternatives: options.Alternatives = None,
    free_back_off: options.FreeBackOff = None,
    free_branching: options.FreeBranching = None,
    forced_spans: options.ForcedSpans = None,
    constrained: options.Constrained = True,
    constraint: options.Constraint = None,
    grammar: options.Grammar = None,
    copy: options.Copy = None,
    isolate_grammar: options.IsolateGrammar = False,
    server_grammar: options.ServerGrammar = None,
    rerank: options.Rerank = None,
    vote: options.Vote = None,
    seed: options.Seed = None,
    prompt: options.Prompt = None,
    description_lines: options.DescriptionLines = None,
    examples: options.Examples = None,
    retriever: options.Retriever = None,
    retriever_model: options.RetrieverModel = None,
    order: options.Order = None,
    model: options.Model = EMBEDDED,
    adapter: options.Adapter = None,
    base_url: options.BaseUrl = None,
    max_concurrency: options.MaxConcurrency = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    max_tokens_total: options.MaxTokensTotal = None,
    max_cost: options.MaxCost = None,
    cache: options.Cache = True,
    context_length: options.ContextLength = None,
    execute: options.Execute = None,
    max_risk: options.MaxRisk = None,
    yes: Annotated[
        bool, options.option(options.OUTPUT, "Execute the best candidate instead of asking.", "--yes")
    ] = False,
    log: Annotated[
        bool | None,
        options.option(
            options.OUTPUT,
            "Whether the parse is added to the feedback log (default: the domain's setting; see "
            "`fewparse feedback`).",
            "--log/--no-log",
        ),
    ] = None,
    as_json: Annotated[bool, options.option(options.OUTPUT, "Print one JSON object per line.", "--json")] = False,
    show: Annotated[
        bool,
        options.option(
            options.OUTPUT, "Also print the examples, the prompt and each round of the search.", "--explain"
        ),
    ] = False,
    n_best: Annotated[int | None, options.option(options.OUTPUT, "Number of candidates to return.", min=1)] = None,
) -> None:
    """Parse one utterance, or every line of standard input, into a well-formed program.

    In a terminal, a program that may be wrong is executed after a question. The
    exit code is 0 if all programs are executed, 3 if one needs to be confirmed,
    4 if an utterance is declined as out of scope, and 1 if one has no program.
    """
    if utterance is not None:
        check_utterance(utterance)
    loaded, resolved = prepare(
        domain,
        model,
        data=data,
        pool=pool,
        constraint=constraint,
        grammar=grammar,
        copy=copy,
        isolate_grammar=isolate_grammar,
        target=target,
        decoder=decoder,
        width=width,
        temperature=temperature,
        max_tokens=max_tokens,
        rounds=rounds,
        margin=margin,
        alternatives=alternatives,
        free_back_off=free_back_off,
        free_branching=free_branching,
        forced_spans=forced_spans,
        constrained=constrained,
        server_grammar=server_grammar,
        rerank=rerank,
        vote=vote,
        execute=execute,
        max_risk=max_risk,
        seed=seed,
        prompt=prompt,
        description_lines=description_lines,
        examples=examples,
        retriever=retriever,
        retriever_model=retriever_model,
        order=order,
        adapter=adapter,
        n_best=n_best,
        allow_code=code_allowed(domain, allow_code),
        paper=paper,
    )
    check_context(context, utterance, loaded.template(resolved.prompt))
    warn_of_gaps(loaded, resolved)
    if resolved.execute:
        warn_of_code(loaded)
    remote = remote_settings(
        [model, retriever_model],
        base_url,
        max_concurrency,
        timeout,
        deadline,
        max_tokens_total,
        max_cost,
        cache,
        context_length,
    )
    with opened_model(model, remote, max_concurrency) as opened, named_model(retriever_model, remote) as ranking:
        parser = Parser(loaded, opened, resolved, retriever_model=ranking)
        for note in parser.notes:
            warn(note)
        ending = Ending(parser, yes, as_json, log)
        codes = [parse_line(parser, line, context, as_json, show, n_best, ending) for line in lines(utterance)]
    if code := next((code for code in EXIT_CODES if code in codes), 0):
        raise typer.Exit(code)


def parse_line(
    parser: Parser, line: Line, context: str, as_json: bool, show: bool, n_best: int | None, ending: Ending
) -> int:
    """Parse one line, print the result or an error, and ask if necessary; return the exit code."""
    number, text = line
    try:
        if isinstance(text, FewparseError):
            raise text
        found = ending.parse(text, context)
    except FewparseError as error:
        show_error(error, where=f"line {number}: " if number else "")
        if as_json:
            utterance = None if isinstance(text, Exception) else text
            echo(to_json({"utterance": utterance, "error": error.message}))
        return FAILED
    if show and not as_json:
        explain(found, parser)
    show_parse(found, as_json, n_best)
    return ending.end(found)


def check_context(context: str, utterance: str | None, template: Template) -> None:
    """Raise a `UsageError` for a context that is not text, or that the prompt does not show."""
    if not is_unicode(context):
        raise UsageError("the context is not UTF-8 text")
    if context and utterance is None:
        raise UsageError("--context is for one utterance", "Give the utterance as an argument.")
    if context and not template.has_context:
        raise UsageError(
            f"the prompt `{template.name}` does not show the context",
            "Use --prompt chatml-context, or your own template that contains {context}.",
        )


def lines(utterance: str | None) -> Iterator[Line]:
    """Yield the utterance, or the numbered lines of standard input; blank lines are skipped."""
    if utterance is not None:
        yield 0, utterance
        return
    yield from (line for line in input_lines() if isinstance(line[1], FewparseError) or line[1].strip())


def show_parse(found: Parse, as_json: bool, n_best: int | None) -> None:
    """Print a parse, as JSON or for people."""
    if as_json:
        echo(to_json(found.as_dict()))
        return
    out.print(found.utterance, style="bold", markup=False)
    if found.output is None:
        out.print(f"  no parse: {found.failure}", style="red", markup=False)
        return
    out.print(f"  {found.output}", style="cyan", markup=False)
    if found.target == "canonical" and found.program is not None:
        out.print(f"  {found.program}", style="cyan", markup=False)
    if found.decision in (None, "execute"):
        show_outcome(found.answer, found.answer_error)
    if n_best is not None:
        for rank, candidate in enumerate(found.candidates, 1):
            out.print(f"    {rank}. {candidate.score:8.3f}  {candidate.text}", style="dim", markup=False)
    for note in found.notes:
        out.print(f"  note: {note}", style="yellow", markup=False)
    dropped = {"examples": found.examples_dropped, "lines of the description": found.prompt.lines_dropped}
    for what, count in dropped.items():
        if count:
            out.print(f"  ({count} {what} dropped: they did not fit into the model's context)", style="yellow")
