"""Choose the settings of the bundled calendar domain on its training examples alone.

Each sampled training example is parsed with itself kept out of the prompt; the test set is never touched.
Run: make settings
"""

import random
import sys

from fewparse import load_domain, open_model
from fewparse.retrieve.retriever import open_retriever
from measure import Outcome, compare, nearest, write

ITEMS = 100
SETTINGS: list[dict[str, object]] = [
    {"template": template, "examples": k, "retriever": retriever, "order": order}
    for template, k, retriever, order in [
        ("lisp", 10, "embedding", "best-last"),
        ("chatml", 10, "embedding", "best-last"),
        ("canonical", 10, "embedding", "best-last"),
        ("lisp", 10, "bm25", "best-last"),
        ("lisp", 10, "random", "best-last"),
        ("lisp", 10, "embedding", "best-first"),
        ("lisp", 10, "embedding", "shuffled"),
        ("lisp", 5, "embedding", "best-last"),
        ("lisp", 20, "embedding", "best-last"),
        ("lisp", 40, "embedding", "best-last"),
    ]
]


def main(only: list[str]) -> None:
    """One row a setting, greedy decoding; `only` picks settings by their number."""
    domain = load_domain("calendar")
    model = open_model()
    items = random.Random(0).sample(domain.examples, ITEMS)
    baselines = []
    for name in ("embedding", "bm25"):
        retriever = open_retriever(name, [e.utterance for e in domain.examples], model, 0)
        baselines.append(nearest(f"nearest training utterance, {name}", domain, items, retriever))
    settings = {
        ", ".join(map(str, setting.values())): {"decoder": "greedy", **setting}
        for number, setting in enumerate(SETTINGS)
        if not only or str(number) in only
    }

    def report(outcomes: list[Outcome]) -> None:
        write("calendar-settings", [outcome.row() for outcome in [*baselines, *outcomes]])

    compare(domain, model, items, settings, report)


if __name__ == "__main__":
    main(sys.argv[1:])
