"""Shared by the benchmarks: run several settings on the same items, and write tables of figures."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewparse import Domain, Example, LanguageModel, open_model
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import row
from fewparse.evaluate.run import Progress, Settings, Split, SystemResult, parser_systems, run_evaluation
from fewparse.example import Target
from fewparse.options import NO_ADAPTER, ParserOptions

RESULTS = Path(__file__).parent / "results"
PROMPTS = Path(__file__).parent / "prompts"
Setting = ParserOptions


def compare(
    file: str,
    domain: Domain,
    model: LanguageModel,
    items: Sequence[Example],
    settings: Settings,
    split: Split = "test",
    records: Path | None = None,
    target: Target = "program",
) -> dict[str, SystemResult]:
    """Run the baselines and every setting on all items, write a table, and return the results by name.

    The model is used without the domain's adapter, unless a setting names one.
    """
    untuned: Settings = {name: {"adapter": NO_ADAPTER, **chosen} for name, chosen in settings.items()}
    systems = [*baselines(domain, target, model, 0), *parser_systems(domain, model, untuned)]

    results: dict[str, SystemResult] = {}

    def report(progress: Progress) -> None:
        results[progress.result.name] = progress.result
        if progress.result.name == systems[-1].name:
            write(file, [figures(result) for result in results.values()])

    run_evaluation(domain, systems, items, split, Records(records), report)
    return results


def figures(result: SystemResult) -> dict[str, Any]:
    """Return the main figures of a system."""
    found = row(result, result)
    accuracy = found["accuracy"]
    return {
        "setting": result.name,
        "items": found["items"],
        "accuracy": accuracy["value"],
        "95% interval": f"{accuracy['low']:.2f}-{accuracy['high']:.2f}",
        "before reranking": found["before_reranking"]["value"],
        "by vote": found["by_vote"]["value"],
        "exact match": found["exact_match"]["value"],
        "top 10": found["top_k"]["10"]["value"],
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
    """Change one setting at a time, on training examples, and write one row per change."""
    settings = {describe(change): with_prompt_path({**base, **change}) for change in changes}
    target: Target = "program" if base["target"] == "program" else "canonical"
    compare(file, domain, open_model(), items, settings, "train", RESULTS / f"{file}-records.jsonl", target)


def describe(change: Setting) -> str:
    """Return the name of a row."""
    return ", ".join(f"{name} {value}" for name, value in change.items()) or "base"


def with_prompt_path(setting: Setting) -> Setting:
    """Replace the name of a prompt by its path, if it is in the folder `prompts`."""
    path = PROMPTS / f"{setting['prompt']}.toml"
    return {**setting, "prompt": str(path)} if path.exists() else setting
