"""Tune the embedded model to domains, one after another, and evaluate each on its whole test set.

Run: python benchmarks/tuning.py [DOMAIN:TARGET ...]. All learn for the same number of epochs. What was tuned is
not tuned again, what was evaluated not evaluated again; figures are written after every domain.
"""

import json
import sys
import time

from fewparse import Domain, load_domain, open_model
from fewparse.domains.overnight.world import WORLDS
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import row
from fewparse.evaluate.run import evaluate, prompted
from fewparse.example import Target
from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.tune.recipe import Recipe
from fewparse.tune.tuning import Tuning
from measure import RESULTS, write

EVERYTHING = [*(f"overnight/{world}:canonical" for world in WORLDS), "overnight/calendar:program"]
EVERYTHING += ["smcalflow:canonical", "smcalflow:program"]
RECIPE = Recipe(held_out=0.0)
SECONDS = RESULTS / "tuning-seconds.json"


def main(chosen: list[str]) -> None:
    """One row a domain and target."""
    model = open_model()
    assert isinstance(model, EmbeddedModel)
    rows: list[dict[str, object]] = []
    for work in chosen:
        name, _, target = work.partition(":")
        domain = load_domain(name)
        rows.append(figures(domain, "program" if target == "program" else "canonical", model))
        write("tuning", rows)


def figures(domain: Domain, target: Target, model: EmbeddedModel) -> dict[str, object]:
    """What a tuned model gets right, and what its tuning took."""
    path = domain.adapter_path(target)
    taken: dict[str, float] = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    work = f"{domain.name}, {target}"
    if not path.exists():
        begin = time.perf_counter()
        Tuning(domain, target, model, RECIPE, path).run()
        taken[work] = round(time.perf_counter() - begin)
        SECONDS.write_text(json.dumps(taken, indent=1) + "\n")
    told = read_adapter(path).provenance
    assert told is not None
    systems = prompted(domain, model, {work: {"target": target, "adapter": path}})
    records = Records(RESULTS / "tuning-records.jsonl")
    (outcome,) = evaluate(domain, systems, domain.test_examples, "test", records)
    own = row(outcome, outcome)
    return {
        "domain": domain.name,
        "target": target,
        "taught": told.examples,
        "epochs": told.epochs,
        "tuning seconds": taken.get(work, ""),
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
    main(sys.argv[1:] or EVERYTHING)
