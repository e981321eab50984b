"""Tune the embedded model to domains, one after another, then evaluate each on its whole test set.

Run: python benchmarks/tuning.py [tune] [DOMAIN:TARGET ...]. All learn for the same number of epochs. What was
tuned is not tuned again, what was evaluated not evaluated again; figures are written after every domain, beside
those of others. With `tune` nothing is evaluated.
"""

import json
import sys
import time

from fewparse import Domain, load_domain, open_model
from fewparse.datasets.overnight.world import WORLDS
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import row
from fewparse.evaluate.run import evaluate, prompted
from fewparse.example import Target
from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.tune.config import TuneConfig
from fewparse.tune.tuning import Tuning
from measure import RESULTS, write

EVERYTHING = [*(f"overnight/{world}:canonical" for world in WORLDS), "overnight/calendar:program"]
EVERYTHING += ["smcalflow:canonical", "smcalflow:program"]
TARGETS: dict[str, Target] = {"canonical": "canonical", "program": "program"}
CONFIG = TuneConfig(held_out=0.0)
SECONDS = RESULTS / "tuning-seconds.json"


def main(chosen: list[str]) -> None:
    """One row a domain and target."""
    tune_only = chosen[:1] == ["tune"]
    works = [work.partition(":") for work in chosen[tune_only:] or EVERYTHING]
    model = open_model()
    assert isinstance(model, EmbeddedModel)
    domains = [(load_domain(name), TARGETS[target]) for name, _, target in works]
    for domain, target in domains:
        tune(domain, target, model)
    for domain, target in domains[: 0 if tune_only else None]:
        write("tuning", [*others(domain, target), figures(domain, target, model)])


def others(domain: Domain, target: Target) -> list[dict[str, object]]:
    """The rows that were measured before, without the one of this domain and target."""
    kept = RESULTS / "tuning.json"
    rows: list[dict[str, object]] = json.loads(kept.read_text()) if kept.exists() else []
    return [row for row in rows if (row["domain"], row["target"]) != (domain.name, target)]


def tune(domain: Domain, target: Target, model: EmbeddedModel) -> None:
    """Make the adapter if there is none, and keep how long it took."""
    path = domain.adapter_path(target)
    if path.exists():
        return
    begin = time.perf_counter()
    Tuning(domain, target, model, CONFIG, path).run()
    taken = {**seconds_taken(), work(domain, target): round(time.perf_counter() - begin)}
    SECONDS.write_text(json.dumps(taken, indent=1) + "\n")


def seconds_taken() -> dict[str, int]:
    """How long each tuning took."""
    return dict(json.loads(SECONDS.read_text())) if SECONDS.exists() else {}


def work(domain: Domain, target: Target) -> str:
    """The name of a row."""
    return f"{domain.name}, {target}"


def figures(domain: Domain, target: Target, model: EmbeddedModel) -> dict[str, object]:
    """What a tuned model gets right, and what its tuning took."""
    path = domain.adapter_path(target)
    told = read_adapter(path).provenance
    assert told is not None
    systems = prompted(domain, model, {work(domain, target): {"target": target, "adapter": path}})
    records = Records(RESULTS / "tuning-records.jsonl")
    (outcome,) = evaluate(domain, systems, domain.test_examples, "test", records)
    own = row(outcome, outcome)
    return {
        "domain": domain.name,
        "target": target,
        "taught": told.examples,
        "epochs": told.epochs,
        "tuning seconds": seconds_taken().get(work(domain, target), ""),
        "items": own["items"],
        "model alone": own["model_alone"]["value"],
        "right answer": own["accuracy"]["value"],
        "95% interval": f"{own['accuracy']['low']:.2f}-{own['accuracy']['high']:.2f}",
        "exact program": own["exact_program"]["value"],
        "right one among 10": own["top"]["10"]["value"],
        "requests": own["requests"],
        "forward tokens": own["forward_tokens"],
        "seconds": own["decoding_seconds"],
        "prompt seconds": own["prompt_seconds"],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
