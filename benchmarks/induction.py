"""Measure how many unseen programs an induced grammar derives, and its size, by level of merging.

Run: python benchmarks/induction.py. Overnight and SMCalFlow are included if their data is available.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from fewparse import load_domain
from fewparse.datasets.overnight.world import WORLDS
from fewparse.grammar.induction.induce import MergeLevel, coverage, induce
from fewparse.grammar.induction.rule_writer import literal_class
from fewparse.grammar.induction.sexpr import Atom, Node, read_program
from measure import write

DATA = Path(__file__).parents[2] / "shared" / "data"
TRAINING_PROGRAMS = 200


def main() -> None:
    """Write one row per domain: the share of test examples, and of distinct test programs, that are derived."""
    rows: list[dict[str, object]] = []
    shares: list[list[float]] = []
    for name, training, test in tasks():
        distinct = sorted(set(test))
        induced = {merge: induce(training, merge) for merge in get_args(MergeLevel)}
        grammars = {merge: result.grammar for merge, result in induced.items()}
        examples = {merge: coverage(grammar, test).share for merge, grammar in grammars.items()}
        programs = {f"{merge}, distinct": coverage(g, distinct).share for merge, g in grammars.items()}
        seen = {word for program in training for word in words(program)}
        ceiling = sum(seen.issuperset(words(program)) for program in test) / len(test)
        figures = {**examples, **programs, "all words seen": ceiling}
        if name.startswith("overnight"):
            shares.append(list(figures.values()))
        rows.append(
            {
                "domain": name,
                "training programs, distinct": len(set(training)),
                "functions": induced["typed"].functions,
                "constants": induced["typed"].constants,
                "test examples": len(test),
                "test programs, distinct": len(distinct),
                **{key: f"{value:.3f}" for key, value in figures.items()},
                **{f"rules, {merge}": len(grammar.rules) for merge, grammar in grammars.items()},
            }
        )
    if shares:
        means = [sum(column) / len(shares) for column in zip(*shares, strict=True)]
        named = {key: f"{mean:.3f}" for key, mean in zip(figures, means, strict=True)}
        rows.append({key: {"domain": "overnight, mean", **named}.get(key, "") for key in rows[0]})
    write("induction", rows)


def tasks() -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Yield the name, the training programs and the test programs of each domain."""
    calendar = load_domain("calendar")
    yield (
        "calendar (bundled)",
        [example.program for example in calendar.examples],
        [example.program for example in calendar.test_examples],
    )
    smcalflow = DATA / "smcalflow"
    if smcalflow.exists():
        yield "smcalflow", read(smcalflow / "train_300.jsonl"), read(smcalflow / "dev_200.jsonl")
    for domain in WORLDS if (DATA / "overnight").exists() else ():
        train, test = (DATA / "overnight" / f"{domain}.{part}.jsonl.gz" for part in ("train", "test"))
        yield f"overnight {domain}", read(train)[:TRAINING_PROGRAMS], read(test)


def read(path: Path) -> list[str]:
    """Return the programs of a file of examples."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [json.loads(line)["program"] for line in text.splitlines()]


def words(program: str) -> set[str]:
    """Return the words of a program that are not literals."""
    found: set[str] = set()
    agenda: list[Node] = [read_program(program)]
    while agenda:
        node = agenda.pop()
        if not isinstance(node, Atom):
            agenda += node.items
        elif not node.quoted and literal_class(node.text) is None:
            found.add(node.text)
    return found


if __name__ == "__main__":
    main()
