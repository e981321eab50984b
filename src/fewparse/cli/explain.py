"""`--explain`: the retrieved examples, the prompt, and each round with its samples and cuts."""

from rich.rule import Rule
from rich.text import Text

from fewparse.cli.console import out
from fewparse.events import (
    BackedOff,
    Branched,
    Completed,
    Event,
    Forced,
    RoundEnded,
    RoundStarted,
    Sampled,
    Spelled,
)
from fewparse.example import Parse
from fewparse.lm.usage import Usage
from fewparse.parser import Parser

PROMPT_STYLE = "dim"
VALID, CUT, BEFORE = "green", "red strike", "dim"


def explain(found: Parse, parser: Parser) -> None:
    """Print the examples, the prompt and the trace of a parse."""
    chosen = parser.options
    out.print(Rule(f"{len(found.examples)} examples by {chosen.retriever}, best first", align="left"))
    for example in found.examples:
        out.print(f"  {example.utterance}", markup=False)
        out.print(f"    {example.output(found.target)}", style="dim", markup=False)
    out.print(Rule(f"prompt, {parser.model.prompt_length(found.prompt)} tokens", align="left"))
    out.print(found.prompt.text, style=PROMPT_STYLE, markup=False)
    search = chosen.search
    form = "constrained" if chosen.constrained else "unconstrained"
    out.print(Rule(f"{form} {search.decoder}, width {search.width}", align="left"))
    for event in found.trace:
        if (line := describe(event)) is not None:
            out.print(line)
    out.print(usage_summary(found.usage), style="dim")
    out.print(Rule("parse", align="left"))


def usage_summary(usage: Usage) -> str:
    """Return the usage of a parse on one line."""
    requests = f"{usage.requests} requests in {usage.rounds} rounds"
    if usage.forward_passes:
        return (
            f"{requests}, {usage.prefill_tokens} prompt tokens and {usage.forward_tokens} others evaluated in "
            f"{usage.forward_passes} passes, {usage.seconds:.2f} s"
        )
    money = "unknown" if usage.cost is None else f"${usage.cost:.6f}"
    return (
        f"{requests} ({usage.cached_requests} from the cache, {usage.retries} retried), "
        f"{usage.prompt_tokens} tokens sent ({usage.cached_prompt_tokens} cached by the server), "
        f"{usage.completion_tokens} received, {usage.seconds:.2f} s, cost {money}"
    )


def describe(event: Event) -> Text | None:
    """Return an event on one line; what was cut is struck through."""
    match event:
        case RoundStarted(number, prefixes):
            return Text(f"round {number}: {len(prefixes)} live", style="bold")
        case Sampled(prefix, pieces, valid, outcome):
            line = Text(f"  {outcome:>8}  ")
            line.append(visible(prefix), style=BEFORE)
            line.append(visible(b"".join(pieces[:valid])), style=VALID)
            if valid < len(pieces):
                line.append("✂", style="bold red")
                line.append(visible(b"".join(pieces[valid:])), style=CUT)
            return line
        case BackedOff(prefix, free, choices):
            kind = "free" if free else "back-off"
            line = Text(f"  {kind:>8}  ").append(visible(prefix), style=BEFORE)
            return line.append("  " + " | ".join(map(visible, choices)), style="yellow")
        case Branched(prefix, piece):
            return (
                Text("    branch  ").append(visible(prefix), style=BEFORE).append(visible(piece), style="yellow")
            )
        case Forced(prefix, span):
            return (
                Text("    forced  ").append(visible(prefix), style=BEFORE).append(visible(span), style="magenta")
            )
        case Spelled(prefix, spans):
            line = Text("   spelled  ").append(visible(prefix), style=BEFORE)
            return line.append("  " + " | ".join(map(visible, spans)), style="magenta")
        case Completed(prefix, completion):
            return (
                Text(" completed  ")
                .append(visible(prefix), style=BEFORE)
                .append(visible(completion), style="magenta")
            )
        case RoundEnded(_, kept):
            lines = [f"      kept  {k.score:8.3f} {'■' if k.finished else '…'} {visible(k.text)}" for k in kept]
            return Text("\n".join(lines), style="cyan")
    return None


def visible(text: bytes) -> str:
    """Return bytes as text, with line breaks and invalid UTF-8 made visible."""
    return text.decode(errors="backslashreplace").replace("\n", "⏎")
