"""Shared by the benchmarks: run a setting over items, and say how good and how dear it was."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fewparse import Example, LanguageModel, Parser, Usage
from fewparse.domains.domain import Domain
from fewparse.errors import ExecutionError
from fewparse.retrieve.retriever import Retriever

RESULTS = Path(__file__).parent / "results"


@dataclass
class Outcome:
    """What one setting did on all items."""

    name: str
    answers: list[bool] = field(default_factory=list)
    by_model: list[bool] = field(default_factory=list)
    programs: list[bool] = field(default_factory=list)
    among: list[bool] = field(default_factory=list)
    outputs: list[str | None] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    def row(self) -> dict[str, object]:
        """The figures an item."""
        n = len(self.answers)
        return {
            "setting": self.name,
            "items": n,
            "right answer": rate(self.answers),
            "± standard error": round(math.sqrt(rate(self.answers) * (1 - rate(self.answers)) / n), 3),
            "right answer, not reranked": rate(self.by_model),
            "exact program": rate(self.programs),
            "right one among candidates": rate(self.among),
            "requests": round(self.usage.requests / n, 2),
            "rounds": round(self.usage.rounds / n, 2),
            "prefill tokens": round(self.usage.prefill_tokens / n, 1),
            "forward tokens": round(self.usage.forward_tokens / n, 1),
            "forward passes": round(self.usage.forward_passes / n, 1),
            "seconds": round(self.seconds / n, 3),
        }


def rate(flags: Sequence[bool]) -> float:
    """The share of true ones."""
    return round(sum(flags) / len(flags), 4) if flags else 0.0


def judge(domain: Domain) -> Callable[[str | None, Example], bool]:
    """Whether a program has the denotation of the gold one; one that fails to execute is wrong."""

    def right(program: str | None, gold: Example) -> bool:
        if program is None:
            return False
        try:
            return bool(domain.execute(program) == domain.execute(gold.program))
        except ExecutionError:
            return False

    return right


def compare(
    domain: Domain,
    model: LanguageModel,
    items: Sequence[Example],
    settings: Mapping[str, Mapping[str, object]],
    after_item: Callable[[list[Outcome]], None] = lambda outcomes: None,
) -> list[Outcome]:
    """Parse every item under every setting, side by side. An item never sees itself among the examples.

    Settings with the same prompt follow each other on one item, and the prompt is evaluated before the clock
    starts: seconds and forward tokens are those of decoding.
    """
    parsers = {name: Parser.from_domain(domain, model, **chosen) for name, chosen in settings.items()}
    outcomes = {name: Outcome(name) for name in settings}
    right = judge(domain)
    warm = None
    for item in items:
        for name, parser in parsers.items():
            prompt = parser.prompt(item.utterance, without=[item])[1]
            if prompt != warm:
                model.next_tokens(prompt, [()], 1, b"\n", outcomes[name].usage)
                outcomes[name].usage.requests -= 1
                outcomes[name].usage.rounds -= 1
                warm = prompt
            begin = time.perf_counter()
            parse = parser.parse(item.utterance, without=[item])
            outcome = outcomes[name]
            outcome.seconds += time.perf_counter() - begin
            outcome.usage += parse.usage
            outcome.outputs.append(parse.output)
            outcome.answers.append(right(parse.program, item))
            alone = max(parse.candidates, key=lambda c: c.model_score, default=None)
            outcome.by_model.append(alone is not None and right(alone.program, item))
            outcome.programs.append(parse.program == item.program)
            outcome.among.append(any(right(c.program, item) for c in parse.candidates))
        after_item(list(outcomes.values()))
    return list(outcomes.values())


def nearest(name: str, domain: Domain, items: Sequence[Example], retriever: Retriever) -> Outcome:
    """No language model at all: the program of the most similar training utterance."""
    right = judge(domain)
    outcome = Outcome(name)
    for item in items:
        begin = time.perf_counter()
        best = next(
            domain.examples[i] for i in retriever.rank(item.utterance, outcome.usage) if domain.examples[i] != item
        )
        outcome.seconds += time.perf_counter() - begin
        outcome.outputs.append(best.program)
        outcome.answers.append(right(best.program, item))
        outcome.by_model.append(outcome.answers[-1])
        outcome.programs.append(best.program == item.program)
        outcome.among.append(outcome.answers[-1])
    return outcome


def write(file: str, rows: Sequence[dict[str, object]]) -> None:
    """Write a table as JSON and as Markdown."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{file}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    heads = list(rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(str(row.get(head, "")) for head in heads) + " |" for row in rows]
    (RESULTS / f"{file}.md").write_text("\n".join(lines) + "\n")
