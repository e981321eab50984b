"""`--explain`: the retrieved examples, the prompt, and each round with its samples and cuts."""

from rich.rule import Rule
from rich.text import Text

from fewparse.cli.console import out
from fewparse.example import Parse
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.search.events import (
    BackedOff,
    Branched,
    Closed,
    Event,
    Forced,
    RoundBegan,
    RoundEnded,
    Sampled,
    Spelt,
)

PROMPT_STYLE = "dim"
VALID, CUT, BEFORE = "green", "red strike", "dim"


def explain(found: Parse, parser: Parser) -> None:
    """Everything that led to a parse."""
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
    out.print(spent(found.usage), style="dim")
    out.print(Rule("parse", align="left"))


def spent(usage: Usage) -> str:
    """What a parse took, in this process or at a server."""
    asked = f"{usage.requests} requests in {usage.rounds} rounds"
    if usage.forward_passes:
        return (
            f"{asked}, {usage.prefill_tokens} prompt tokens and {usage.forward_tokens} others evaluated in "
            f"{usage.forward_passes} passes, {usage.seconds:.2f} s"
        )
    money = "unknown" if usage.cost is None else f"${usage.cost:.6f}"
    return (
        f"{asked} ({usage.cached_requests} answered from the cache, {usage.retries} asked again), "
        f"{usage.prompt_tokens} tokens sent ({usage.cached_prompt_tokens} of them read before), "
        f"{usage.completion_tokens} received, {usage.seconds:.2f} s, cost {money}"
    )


def describe(event: Event) -> Text | None:
    """One event on one line; what was cut is struck through."""
    match event:
        case RoundBegan(number, prefixes):
            return Text(f"round {number}: {len(prefixes)} live", style="bold")
        case Sampled(prefix, pieces, valid, outcome):
            line = Text(f"  {outcome:>8}  ")
            line.append(shown(prefix), style=BEFORE)
            line.append(shown(b"".join(pieces[:valid])), style=VALID)
            if valid < len(pieces):
                line.append("✂", style="bold red")
                line.append(shown(b"".join(pieces[valid:])), style=CUT)
            return line
        case BackedOff(prefix, free, choices):
            kind = "known" if free else "asked"
            line = Text(f"  {kind:>8}  ").append(shown(prefix), style=BEFORE)
            return line.append("  " + " | ".join(map(shown, choices)), style="yellow")
        case Branched(prefix, piece):
            return Text("    branch  ").append(shown(prefix), style=BEFORE).append(shown(piece), style="yellow")
        case Forced(prefix, span):
            return Text("    forced  ").append(shown(prefix), style=BEFORE).append(shown(span), style="magenta")
        case Spelt(prefix, spans):
            line = Text("     spelt  ").append(shown(prefix), style=BEFORE)
            return line.append("  " + " | ".join(map(shown, spans)), style="magenta")
        case Closed(prefix, completion):
            return (
                Text("    closed  ").append(shown(prefix), style=BEFORE).append(shown(completion), style="magenta")
            )
        case RoundEnded(_, kept):
            lines = [f"      kept  {k.score:8.3f} {'■' if k.finished else '…'} {shown(k.text)}" for k in kept]
            return Text("\n".join(lines), style="cyan")
    return None


def shown(text: bytes) -> str:
    """Bytes for the eye: line breaks and broken characters made visible."""
    return text.decode(errors="backslashreplace").replace("\n", "⏎")
