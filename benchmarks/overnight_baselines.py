"""Evaluate the baselines without a language model on the first 100 test items of each Overnight domain.

Run: python benchmarks/overnight_baselines.py; needs the dataset (fewparse data get overnight).
"""

from fewparse import load_domain, open_model
from fewparse.datasets.overnight.world import WORLDS
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.metrics import count
from fewparse.evaluate.run import run_evaluation
from measure import write

ITEMS = 100


def main() -> None:
    """Write one row per domain, with canonical utterances as outputs."""
    model = open_model()
    rows: list[dict[str, object]] = []
    for name in WORLDS:
        domain = load_domain(f"overnight/{name}")
        systems = list(baselines(domain, "canonical", model, 0))
        results = run_evaluation(domain, systems, domain.test_examples[:ITEMS], "test")
        accuracy = {r.name: count([record.correct_within(1) for record in r.records]).value for r in results}
        rows.append({"domain": name, **{system.removeprefix("no model: "): v for system, v in accuracy.items()}})
    means = {head: round(sum(float(str(row[head])) for row in rows) / len(rows), 4) for head in list(rows[0])[1:]}
    write("overnight-baselines", [*rows, {"domain": "mean", **means}])


if __name__ == "__main__":
    main()
