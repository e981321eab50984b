"""Compare one set of weights by three routes: in process, with a llama.cpp server, and in transformers.

Beam 5 on the calendar test set. The routes give slightly different scores to the same string (the noise). If two
routes choose different outputs, the gap that decided it is reported for each: the difference between the final
scores or, if the other's choice was pruned during the search, between the score of its prefix and that of the last
hypothesis kept in that round. Two scores that differ by less than twice the noise may change places.
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
from fewparse.events import RoundEnded
from fewparse.lm.http.load import RemoteSettings
from fewparse.lm.model import Prefix
from fewparse.lm.usage import Usage
from fewparse.lm.weights import pull
from fewparse.options import ParserOptions
from fewparse.prompt import Prompt
from fewparse.search.hypothesis import normalised
from measure import RESULTS, write
from support.llama_server import llama_cpp_server

BEAM: ParserOptions = {"decoder": "beam", "width": 5, "rerank": 0.0, "n_best": 200, "adapter": "none"}
ROUTES = ("embedded", "llama.cpp server", "transformers")
REFERENCE = ROUTES[0]
STOP = b"\n"


@dataclass
class RouteResult:
    """The choice of a route for each item, its scores of all routes' choices, and by how much these lost."""

    best: list[str] = field(default_factory=list)
    scores: list[dict[str, float]] = field(default_factory=list)
    gaps: list[dict[str, float]] = field(default_factory=list)


@contextmanager
def route(name: str) -> Iterator[LanguageModel]:
    """Open the model by one of the routes, and close it at the end."""
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
    """Return the normalised score of an output, computed in one pass."""
    usage = Usage()
    logprob = sum(model.score(prompt, [()], [tokens], usage)[0])
    end = model.next_tokens(prompt, [tokens], 1, STOP, usage)[0].end_logprob if ended else 0.0
    return normalised(logprob + end, len(tokens) + ended)


def gap(model: LanguageModel, parse: Parse, text: str) -> float:
    """Return by how much an output lost in a search: at the end, or in the round where its prefix was pruned."""
    scores = {candidate.text: candidate.model_score for candidate in parse.candidates}
    if text in scores:
        return parse.candidates[0].model_score - scores[text]
    tokens = model.tokenize(parse.prompt.lead + text)
    output = b"".join(token.bytes for token in tokens)
    rounds = [event for event in parse.trace if isinstance(event, RoundEnded)]
    length = 0
    for event in rounds:
        prefixes = [len(kept.text) for kept in event.kept if output.startswith(kept.text)]
        if not prefixes:
            ends = accumulate(len(token.bytes) for token in tokens)
            count = next(i for i, end in enumerate(ends, 1) if end > length)
            return min(kept.score for kept in event.kept) - score(model, parse.prompt, tokens[:count], False)
        length = max(prefixes)
    raise AssertionError("a prefix that is never pruned must be among the candidates")


def run(name: str, items: Sequence[Example], results: Mapping[str, RouteResult], own: RouteResult) -> None:
    """Parse all items by a route, and score the choices of other routes; skip what has been done before."""
    domain = load_domain("calendar")
    with route(name) as model:
        parser = Parser.from_domain(domain, model, **BEAM)
        for i, item in enumerate(items):
            others = {other.best[i] for other in results.values()}
            if i < len(own.best) and others <= own.scores[i].keys():
                continue
            parse = parser.parse(item.utterance)
            if i == len(own.best):
                own.best.append(parse.output or "")
                own.scores.append({})
                own.gaps.append({})
            for text in {own.best[i], *others} - own.scores[i].keys():
                tokens = model.tokenize(parse.prompt.lead + text)
                own.scores[i][text] = score(model, parse.prompt, tokens)
                own.gaps[i][text] = gap(model, parse, text)
            print(f"{name} {i + 1}: {parse.output}", file=sys.stderr, flush=True)


def compare(
    name: str, results: dict[str, RouteResult], items: Sequence[Example]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the agreement of a route with the reference, and each difference with its gaps."""
    one, other = results[REFERENCE], results[name]
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
        "noise, max": round(noise[-1], 3),
        "largest gap of a difference": max(
            (max(d["gap in the reference"], d["gap in the other"]) for d in differences), default=0
        ),
        "differences within twice the noise": sum(d["within twice the noise"] for d in differences),
    }
    return row, differences


def main(limit: int) -> None:
    """Write one row per route, and all differences."""
    items = load_domain("calendar").test_examples[:limit]
    results = {name: RouteResult() for name in ROUTES}
    for turn, name in enumerate((*ROUTES, *ROUTES[:-1])):
        earlier = {other: results[other] for other in ROUTES[:turn]}
        run(name, items, earlier, results[name])
    found = [compare(name, results, items) for name in ROUTES[1:]]
    write("routes", [row for row, _ in found])
    differences = [difference for _, some in found for difference in some]
    (RESULTS / "routes-differences.json").write_text(json.dumps(differences, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
