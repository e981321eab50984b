"""One set of weights by three routes: in process, behind a llama.cpp server, and in transformers.

Beam 5 over the calendar test set. Routes differ a little on one and the same string (the noise). Where two choose
differently, the gap that decided it in each is told: between the final scores or, where the other's choice was
dropped on the way, between its beginning and the last that was kept then. Two scores, each off by the noise, may
change places if they are less than twice the noise apart.
Run: PYTHONPATH=tests python benchmarks/routes.py [number of items].
"""

import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from fewparse import Example, LanguageModel, Parse, Parser, load_domain, open_model
from fewparse.lm.http.load import RemoteSettings
from fewparse.lm.model import Prefix
from fewparse.lm.usage import Usage
from fewparse.lm.weights import pull
from fewparse.prompt import Prompt
from fewparse.search.events import RoundEnded
from fewparse.search.hypothesis import normalised
from measure import RESULTS, write
from support.llama_server import llama_cpp_server

BEAM = {"decoder": "beam", "width": 5, "rerank": 0.0}
ROUTES = ("embedded", "llama.cpp server", "transformers")
REFERENCE = ROUTES[0]
STOP = b"\n"


@dataclass
class Seen:
    """What a route chose for each item, its scores of what any route chose, and by how much that lost here."""

    best: list[str] = field(default_factory=list)
    scores: list[dict[str, float]] = field(default_factory=list)
    gaps: list[dict[str, float]] = field(default_factory=list)


@contextmanager
def route(name: str) -> Iterator[LanguageModel]:
    """The model, by one of the routes; one at a time."""
    if name == "llama.cpp server":
        with llama_cpp_server(pull(), slots=1) as url:
            model = open_model("openai:", remote=RemoteSettings(base_url=url, max_concurrency=1, cache=False))
            yield model
            model.close()
        return
    model = open_model("hf:embedded" if name == "transformers" else "embedded")
    yield model
    model.close()


def score(model: LanguageModel, prompt: Prompt, tokens: Prefix, ended: bool = True) -> float:
    """The normalised score of an output, straight through."""
    usage = Usage()
    said = sum(model.score(prompt, [()], [tokens], usage)[0])
    end = model.next_tokens(prompt, [tokens], 1, STOP, usage)[0].end_logprob if ended else 0.0
    return normalised(said + end, len(tokens) + ended)


def gap(model: LanguageModel, found: Parse, text: str) -> float:
    """By how much an output lost in a search: at its end, or where its beginning was dropped."""
    scores = {candidate.text: candidate.model_score for candidate in found.candidates}
    if text in scores:
        return found.candidates[0].model_score - scores[text]
    tokens = model.tokenize(found.prompt.lead + text)
    said = b"".join(token.bytes for token in tokens)
    ended = [event for event in found.trace if isinstance(event, RoundEnded)]
    length = 0
    for event in ended:
        begun = [len(kept.text) for kept in event.kept if said.startswith(kept.text)]
        if not begun:
            ends = accumulate(len(token.bytes) for token in tokens)
            count = next(i for i, end in enumerate(ends, 1) if end > length)
            return min(kept.score for kept in event.kept) - score(model, found.prompt, tokens[:count], False)
        length = max(begun)
    raise AssertionError("kept to the end, and yet no output")


def look(name: str, items: Sequence[Example], seen: Mapping[str, Seen], mine: Seen) -> None:
    """What a route says of all items, and how what other routes said fared there, as far as not known yet."""
    domain = load_domain("calendar")
    with route(name) as model:
        parser = Parser.from_domain(domain, model, n_best=200, adapter="none", **BEAM)
        for i, item in enumerate(items):
            others = {other.best[i] for other in seen.values()}
            if i < len(mine.best) and others <= mine.scores[i].keys():
                continue
            found = parser.parse(item.utterance)
            if i == len(mine.best):
                mine.best.append(found.output or "")
                mine.scores.append({})
                mine.gaps.append({})
            for text in {mine.best[i], *others} - mine.scores[i].keys():
                tokens = model.tokenize(found.prompt.lead + text)
                mine.scores[i][text] = score(model, found.prompt, tokens)
                mine.gaps[i][text] = gap(model, found, text)
            print(f"{name} {i + 1}: {found.output}", file=sys.stderr, flush=True)


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
            gaps = one.gaps[i][b], other.gaps[i][a]
            differences.append(
                {
                    "route": name,
                    "utterance": item.utterance,
                    REFERENCE: a,
                    "other": b,
                    "gap in the reference": round(gaps[0], 3),
                    "gap in the other": round(gaps[1], 3),
                    "within twice the noise": max(gaps) <= 2 * noise[-1],
                }
            )
    row = {
        "route": name,
        "items": len(items),
        "same output": len(items) - len(differences),
        "noise, median": round(statistics.median(noise), 3),
        "noise, 95%": round(noise[int(0.95 * (len(noise) - 1))], 3),
        "noise, most": round(noise[-1], 3),
        "largest gap of a difference": max(
            (max(d["gap in the reference"], d["gap in the other"]) for d in differences), default=0
        ),
        "differences within twice the noise": sum(d["within twice the noise"] for d in differences),
    }
    return row, differences


def main(limit: int) -> None:
    """One row a route, and every difference."""
    items = load_domain("calendar").test_examples[:limit]
    seen = {name: Seen() for name in ROUTES}
    for turn, name in enumerate((*ROUTES, *ROUTES[:-1])):
        known = {other: seen[other] for other in ROUTES[:turn]}
        look(name, items, known, seen[name])
    found = [compared(name, seen, items) for name in ROUTES[1:]]
    write("routes", [row for row, _ in found])
    differences = [difference for _, some in found for difference in some]
    (RESULTS / "routes-differences.json").write_text(json.dumps(differences, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
