"""Tune the embedded model on several domains, then evaluate each on its whole test set.

Run: python benchmarks/tuning.py [tune] [DOMAIN:TARGET ...]. All are tuned for the same number of epochs. Existing
adapters and records are reused; the table is updated after every domain. With `tune` nothing is evaluated.
"""

import json
import sys
import time

from fewparse import Domain, load_domain, open_model
from fewparse.datasets.overnight.world import WORLDS
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import row
from fewparse.evaluate.run import parser_systems, run_evaluation
from fewparse.example import Target
from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.tune.config import TuneConfig
from fewparse.tune.tuning import Tuning
from measure import RESULTS, write

ALL_TASKS = [*(f"overnight/{world}:canonical" for world in WORLDS), "overnight/calendar:program"]
ALL_TASKS += ["smcalflow:canonical", "smcalflow:program"]
TARGETS: dict[str, Target] = {"canonical": "canonical", "program": "program"}
CONFIG = TuneConfig(held_out=0.0)
SECONDS = RESULTS / "tuning-seconds.json"


def main(chosen: list[str]) -> None:
    """Write one row per domain and target."""
    tune_only = chosen[:1] == ["tune"]
    tasks = [task.partition(":") for task in chosen[tune_only:] or ALL_TASKS]
    model = open_model()
    assert isinstance(model, EmbeddedModel)
    domains = [(load_domain(name), TARGETS[target]) for name, _, target in tasks]
    for domain, target in domains:
        tune(domain, target, model)
    for domain, target in domains[: 0 if tune_only else None]:
        write("tuning", [*other_rows(domain, target), figures(domain, target, model)])


def other_rows(domain: Domain, target: Target) -> list[dict[str, object]]:
    """Return the existing rows of other domains and targets."""
    path = RESULTS / "tuning.json"
    rows: list[dict[str, object]] = json.loads(path.read_text()) if path.exists() else []
    return [row for row in rows if (row["domain"], row["target"]) != (domain.name, target)]


def tune(domain: Domain, target: Target, model: EmbeddedModel) -> None:
    """Write the adapter and the tuning time, unless the adapter exists."""
    path = domain.adapter_path(target)
    if path.exists():
        return
    start = time.perf_counter()
    Tuning(domain, target, model, CONFIG, path).run()
    seconds = {**tuning_seconds(), task_name(domain, target): round(time.perf_counter() - start)}
    SECONDS.write_text(json.dumps(seconds, indent=1) + "\n")


def tuning_seconds() -> dict[str, int]:
    """Return the tuning time of each domain and target."""
    return dict(json.loads(SECONDS.read_text())) if SECONDS.exists() else {}


def task_name(domain: Domain, target: Target) -> str:
    """Return the name of a domain and target."""
    return f"{domain.name}, {target}"


def figures(domain: Domain, target: Target, model: EmbeddedModel) -> dict[str, object]:
    """Evaluate a tuned model and return its figures."""
    path = domain.adapter_path(target)
    provenance = read_adapter(path).provenance
    assert provenance is not None
    systems = parser_systems(domain, model, {task_name(domain, target): {"target": target, "adapter": path}})
    records = Records(RESULTS / "tuning-records.jsonl")
    (result,) = run_evaluation(domain, systems, domain.test_examples, "test", records)
    found = row(result, result)
    return {
        "domain": domain.name,
        "target": target,
        "examples": provenance.examples,
        "epochs": provenance.epochs,
        "tuning seconds": tuning_seconds().get(task_name(domain, target), ""),
        "items": found["items"],
        "before reranking": found["before_reranking"]["value"],
        "accuracy": found["accuracy"]["value"],
        "95% interval": f"{found['accuracy']['low']:.2f}-{found['accuracy']['high']:.2f}",
        "exact match": found["exact_match"]["value"],
        "top 10": found["top_k"]["10"]["value"],
        "requests": found["requests"],
        "forward tokens": found["forward_tokens"],
        "seconds": found["decoding_seconds"],
        "prompt seconds": found["prompt_seconds"],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
