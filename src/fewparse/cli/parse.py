"""`fewparse parse`: utterances to programs."""

import json
from collections.abc import Iterator
from typing import Annotated

import typer

from fewparse.cli import options
from fewparse.cli.console import FAILED, download_progress, input_lines, out, show_error
from fewparse.cli.explain import explain
from fewparse.cli.remote import remote_settings
from fewparse.cli.warnings import prepared
from fewparse.domains.load import load_domain
from fewparse.errors import FewparseError, UsageError
from fewparse.example import Parse, answer_text, check_utterance, is_unicode
from fewparse.lm.load import EMBEDDED, open_model
from fewparse.options import Options
from fewparse.parser import Parser
from fewparse.prompt import Template


def parse(
    domain: options.Domain,
    utterance: Annotated[
        str | None, typer.Argument(help="What to parse; left out, every line of standard input.")
    ] = None,
    context: Annotated[str, typer.Option(help="What was said before the utterance, if the prompt shows it.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    show: Annotated[bool, typer.Option("--explain", help="Show examples, prompt, rounds and cuts.")] = False,
    n_best: Annotated[int | None, typer.Option(help="How many candidates to show.", min=1)] = None,
    decoder: options.Decoder = None,
    width: options.Width = None,
    temperature: options.Temperature = None,
    max_tokens: options.MaxTokens = None,
    unconstrained: options.Unconstrained = False,
    constraint: options.Constraint = None,
    grammar: options.Grammar = None,
    copy: options.Copy = None,
    examples: options.Examples = None,
    retriever: options.Retriever = None,
    order: options.Order = None,
    prompt: options.Prompt = None,
    target: options.Target = None,
    rerank: options.Rerank = None,
    vote: options.Vote = None,
    adapter: options.Adapter = None,
    pool: options.Pool = None,
    data: options.Data = None,
    model: options.Model = EMBEDDED,
    base_url: options.BaseUrl = None,
    max_concurrency: options.MaxConcurrency = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    max_tokens_total: options.MaxTokensTotal = None,
    max_cost: options.MaxCost = None,
    cache: options.Cache = True,
    context_length: options.ContextLength = None,
    server_grammar: options.ServerGrammar = False,
    seed: options.Seed = None,
) -> None:
    """Parse one utterance, or every line of standard input, into a well-formed program."""
    if utterance is not None:
        check_utterance(utterance)
    loaded = load_domain(domain, data, pool, constraint, grammar, copy)
    options = Options.resolve(
        loaded,
        model,
        n_best=n_best,
        decoder=decoder,
        width=width,
        temperature=temperature,
        max_tokens=max_tokens,
        constrained=not unconstrained,
        server_grammar=server_grammar,
        examples=examples,
        retriever=retriever,
        order=order,
        prompt=prompt,
        target=target,
        rerank=rerank,
        vote=vote,
        adapter=adapter,
        seed=seed,
    )
    loaded.check(options.target, options.prompt)
    check_context(context, utterance, loaded.template(options.prompt))
    loaded = prepared(loaded, options.target)
    remote = remote_settings(
        model, base_url, max_concurrency, timeout, deadline, max_tokens_total, max_cost, cache, context_length
    )
    with download_progress() as progress:
        opened = open_model(model, progress, remote)
    parser = Parser(loaded, opened, options)
    failed = False
    for number, line in [(0, utterance)] if utterance is not None else lines():
        try:
            if isinstance(line, FewparseError):
                raise line
            found = parser.parse(line, context)
        except FewparseError as error:
            failed = True
            show_error(error, where=f"line {number}: " if number else "")
            if as_json:
                typer.echo(
                    json.dumps(
                        {"utterance": None if isinstance(line, Exception) else line, "error": error.message}
                    )
                )
            continue
        failed = failed or found.output is None
        if show and not as_json:
            explain(found, parser)
        show_parse(found, as_json, n_best)
    if failed:
        raise typer.Exit(FAILED)


def check_context(context: str, utterance: str | None, template: Template) -> None:
    """Refuse a context that cannot be read, or would come to nothing."""
    if not is_unicode(context):
        raise UsageError("the context is not UTF-8 text")
    if context and utterance is None:
        raise UsageError("--context stands before one utterance", "Give the utterance as an argument.")
    if context and not template.has_context:
        raise UsageError(
            f"the prompt `{template.name}` has no place for what was said before",
            "Use --prompt chatml-context, or one of your own with {context} in it.",
        )


def lines() -> Iterator[tuple[int, str | FewparseError]]:
    """The utterances of standard input; blank lines between them are passed over."""
    return ((n, line) for n, line in input_lines() if isinstance(line, FewparseError) or line.strip())


def show_parse(found: Parse, as_json: bool, n_best: int | None) -> None:
    """One parse, for a program or for a person."""
    if as_json:
        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False))
        return
    out.print(found.utterance, style="bold", markup=False)
    if found.output is None:
        out.print(f"  no parse: {found.failure}", style="red", markup=False)
        return
    out.print(f"  {found.output}", style="cyan", markup=False)
    if found.target == "canonical" and found.program is not None:
        out.print(f"  {found.program}", style="cyan", markup=False)
    if found.answer_error is not None:
        out.print(f"  = error: {found.answer_error}", style="red", markup=False)
    elif found.answer is not None:
        out.print(f"  = {answer_text(found.answer)}", style="green", markup=False)
    if n_best is not None:
        for rank, candidate in enumerate(found.candidates, 1):
            out.print(f"    {rank}. {candidate.score:8.3f}  {candidate.text}", style="dim", markup=False)
    if found.examples_dropped:
        out.print(
            f"  ({found.examples_dropped} examples left out: they did not fit into the model's context)",
            style="yellow",
        )
