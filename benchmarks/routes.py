"""One set of weights by three routes: in process, behind a llama.cpp server, and in transformers.

Beam 5 over the calendar test set. Where two routes choose differently, the gap between the two outputs in each
route's own scores is set against how much the routes differ on one and the same string.
Run: python benchmarks/routes.py [number of items].
"""

import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fewparse import Example, LanguageModel, Parser, load_domain, open_model
from fewparse.lm.http.opening import Remote
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.hypothesis import normalised
from llama_server import llama_server
from measure import RESULTS, write

BEAM = {"decoder": "beam", "width": 5, "rerank": 0.0}
ROUTES = ("embedded", "llama.cpp server", "transformers")
REFERENCE = ROUTES[0]
STOP = b"\n"


@dataclass
class Seen:
    """What a route chose for each item, and its scores of every string that any route chose."""

    best: list[str] = field(default_factory=list)
    scores: list[dict[str, float]] = field(default_factory=list)


@contextmanager
def route(name: str) -> Iterator[LanguageModel]:
    """The model, by one of the routes; one at a time."""
    if name == "llama.cpp server":
        with llama_server(slots=1) as url:
            model = open_model("openai:", remote=Remote(base_url=url, at_once=1, cached=False))
            yield model
            model.close()
        return
    model = open_model("hf:embedded" if name == "transformers" else "embedded")
    yield model
    model.close()


def score(model: LanguageModel, prompt: Prompt, text: str) -> float:
    """The normalised score of a whole output, straight through, the ending counted."""
    usage = Usage()
    tokens = model.tokenize(text)
    said = sum(model.score(prompt, [()], [tokens], usage)[0])
    end = model.next_tokens(prompt, [tokens], 1, STOP, usage)[0].end_logprob
    return normalised(said + end, len(tokens) + 1)


def look(name: str, items: Sequence[Example], before: Sequence[Seen]) -> Seen:
    """What a route says of all items, and its scores of that and of what the routes before it said."""
    seen = Seen()
    domain = load_domain("calendar")
    with route(name) as model:
        parser = Parser.from_domain(domain, model, **BEAM)
        lead = domain.template().lead
        for i, item in enumerate(items):
            found = parser.parse(item.utterance)
            seen.best.append(found.output or "")
            said = dict.fromkeys([found.output or "", *(other.best[i] for other in before)])
            seen.scores.append({text: score(model, found.prompt, lead + text) for text in said})
            print(f"{name} {i + 1}: {found.output}", file=sys.stderr, flush=True)
    return seen


def complete(name: str, items: Sequence[Example], seen: dict[str, Seen]) -> None:
    """The scores that a route has not given yet, of strings that only later routes chose."""
    mine = seen[name]
    wanted = [{other.best[i] for other in seen.values()} - mine.scores[i].keys() for i in range(len(items))]
    if not any(wanted):
        return
    domain = load_domain("calendar")
    with route(name) as model:
        parser = Parser.from_domain(domain, model, **BEAM)
        lead = domain.template().lead
        for i, (item, texts) in enumerate(zip(items, wanted, strict=True)):
            prompt = parser.prompt(item.utterance)[1] if texts else None
            for text in texts:
                assert prompt is not None
                mine.scores[i][text] = score(model, prompt, lead + text)


def compared(
    name: str, seen: dict[str, Seen], items: Sequence[Example]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How often a route agrees with the reference, and each difference with its gaps."""
    one, other = seen[REFERENCE], seen[name]
    noise = sorted(abs(one.scores[i][one.best[i]] - other.scores[i][one.best[i]]) for i in range(len(items)))
    differences: list[dict[str, Any]] = []
    for i, item in enumerate(items):
        a, b = one.best[i], other.best[i]
        if a != b:
            gaps = one.scores[i][a] - one.scores[i][b], other.scores[i][b] - other.scores[i][a]
            differences.append(
                {
                    "route": name,
                    "utterance": item.utterance,
                    REFERENCE: a,
                    "other": b,
                    "gap in the reference": round(gaps[0], 3),
                    "gap in the other": round(gaps[1], 3),
                    "within noise": max(gaps) <= noise[-1],
                }
            )
    row = {
        "route": name,
        "items": len(items),
        "same output": len(items) - len(differences),
        "noise, median": round(statistics.median(noise), 3),
        "noise, 95%": round(noise[int(0.95 * (len(noise) - 1))], 3),
        "noise, most": round(noise[-1], 3),
        "differences within noise": f"{sum(d['within noise'] for d in differences)} of {len(differences)}",
    }
    return row, differences


def main(limit: int) -> None:
    """One row a route, and every difference."""
    items = load_domain("calendar").test_examples[:limit]
    seen: dict[str, Seen] = {}
    for name in ROUTES:
        seen[name] = look(name, items, list(seen.values()))
    for name in ROUTES[:-1]:
        complete(name, items, seen)
    found = [compared(name, seen, items) for name in ROUTES[1:]]
    write("routes", [row for row, _ in found])
    differences = [difference for _, some in found for difference in some]
    (RESULTS / "routes-differences.json").write_text(json.dumps(differences, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
