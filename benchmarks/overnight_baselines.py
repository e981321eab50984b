"""What can be had on Overnight without a language model: all eight domains, the first 100 test items of each.

Run: python benchmarks/overnight_baselines.py; the dataset must be there (fewparse data get overnight).
"""

from fewparse import load_domain, open_model
from fewparse.datasets.overnight.world import WORLDS
from fewparse.evaluate.baselines import baselines
from fewparse.evaluate.metrics import count
from fewparse.evaluate.run import evaluate
from measure import write

ITEMS = 100


def main() -> None:
    """One row a domain, canonical utterances as outputs."""
    model = open_model()
    rows: list[dict[str, object]] = []
    for name in WORLDS:
        domain = load_domain(f"overnight/{name}")
        systems = list(baselines(domain, "canonical", model, 0))
        outcomes = evaluate(domain, systems, domain.test_examples[:ITEMS], "test")
        right = {o.name: count([r.right_within(1) for r in o.records]).value for o in outcomes}
        rows.append({"domain": name, **{system.removeprefix("no model: "): v for system, v in right.items()}})
    means = {head: round(sum(float(str(row[head])) for row in rows) / len(rows), 4) for head in list(rows[0])[1:]}
    write("overnight-baselines", [*rows, {"domain": "mean", **means}])


if __name__ == "__main__":
    main()
