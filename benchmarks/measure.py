"""Shared by the benchmarks: run settings over items side by side, and write the figures down as they come."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fewparse import Domain, Example, LanguageModel, open_model
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import row
from fewparse.evaluate.run import Outcome, Settings, Split, evaluate, prompted
from fewparse.example import Target
from fewparse.options import NO_ADAPTER

RESULTS = Path(__file__).parent / "results"
PROMPTS = Path(__file__).parent / "prompts"
Setting = Mapping[str, object]


def compare(
    file: str,
    domain: Domain,
    model: LanguageModel,
    items: Sequence[Example],
    settings: Settings,
    split: Split = "test",
    records: Path | None = None,
    target: Target = "program",
) -> dict[str, Outcome]:
    """Every setting on every item, behind what needs no model, as one table; the outcomes by name.

    The model is prompted, unless a setting names an adapter.
    """
    untuned = {name: {"adapter": NO_ADAPTER, **chosen} for name, chosen in settings.items()}
    systems = [*baselines(domain, target, model, 0), *prompted(domain, model, untuned)]

    def report(outcomes: list[Outcome]) -> None:
        if outcomes[-1].records and len(outcomes[0].records) == len(outcomes[-1].records):
            write(file, [figures(outcome) for outcome in outcomes])

    return {o.name: o for o in evaluate(domain, systems, items, split, Records(records), report)}


def figures(outcome: Outcome) -> dict[str, Any]:
    """The figures of a system that a table has room for."""
    found = row(outcome, outcome)
    accuracy = found["accuracy"]
    return {
        "setting": outcome.name,
        "items": found["items"],
        "right answer": accuracy["value"],
        "95% interval": f"{accuracy['low']:.2f}-{accuracy['high']:.2f}",
        "right answer, not reranked": found["model_alone"]["value"],
        "right answer, by vote": found["by_vote"]["value"],
        "exact program": found["exact_program"]["value"],
        "right one among 10": found["top"]["10"]["value"],
        "requests": found["requests"],
        "rounds": found["rounds"],
        "prefill tokens": found["prefill_tokens"],
        "forward tokens": found["forward_tokens"],
        "forward passes": found["forward_passes"],
        "seconds": found["decoding_seconds"],
        "prompt seconds": found["prompt_seconds"],
    }


def write(file: str, rows: Sequence[dict[str, object]]) -> None:
    """Write a table as JSON and as Markdown."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{file}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    heads = list(rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(str(row.get(head, "")) for head in heads) + " |" for row in rows]
    (RESULTS / f"{file}.md").write_text("\n".join(lines) + "\n")


def compare_changes(
    file: str, domain: Domain, items: Sequence[Example], base: Setting, changes: Sequence[Setting]
) -> None:
    """One setting changed at a time, on training examples: a row a change, behind the base itself."""
    settings = {describe(change): located({**base, **change}) for change in changes}
    target: Target = "program" if base["target"] == "program" else "canonical"
    compare(file, domain, open_model(), items, settings, "train", RESULTS / f"{file}-records.jsonl", target)


def describe(change: Setting) -> str:
    """The name of a row in which something was changed."""
    return ", ".join(f"{name} {value}" for name, value in change.items()) or "base"


def located(setting: Setting) -> Setting:
    """The setting with the place of its prompt, where that is one of ours."""
    path = PROMPTS / f"{setting['prompt']}.toml"
    return {**setting, "prompt": str(path)} if path.exists() else setting
