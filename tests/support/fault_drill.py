"""Many concurrent searches with a remote model: run by tests, in their own process or in one that is killed.

Run: python -m support.fault_drill URL CACHE_FOLDER ITEMS; prints one JSON list for each item, in order.
"""

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from fewparse import retry
from fewparse.constrain.trie import Trie
from fewparse.lm.model import LanguageModel
from fewparse.lm.response_cache import ResponseCache
from fewparse.lm.usage import Usage
from fewparse.search.decode import decode
from fewparse.search.settings import SearchSettings
from fewparse.vocabulary import BYTES
from support.prompts import plain_prompt
from support.remote_models import capabilities_of, model_at
from support.server_behaviours import COMPLIANT

MAX_CONCURRENCY = 8
WORDS = ["a", "ab", "abc", "b", "bca", "cab", "cc", "acb", "bb", "caab"]
DECODERS = {
    "speculative": SearchSettings(width=3, temperature=1.0, max_tokens=8, rounds=3, alternatives=10),
    "beam": SearchSettings(decoder="beam", width=2, max_tokens=8),
}
Outputs = list[tuple[str, float]]


def search(model: LanguageModel, item: int, decoder: str) -> tuple[Outputs, Usage]:
    """Return the outputs of one item with their scores, and the usage."""
    usage = Usage()
    prompt = plain_prompt(f"item {item}: ")
    constraint = Trie(WORDS, model.vocabulary or BYTES)
    found = decode(model, prompt, constraint, DECODERS[decoder], usage)
    return [(h.text.decode(), round(h.score, 9)) for h in found], usage


def search_all(model: LanguageModel, items: int, decoder: str) -> list[tuple[Outputs, Usage]]:
    """Search all items concurrently; return the results in order."""
    with ThreadPoolExecutor(MAX_CONCURRENCY) as pool:
        return list(pool.map(lambda item: search(model, item, decoder), range(items)))


def run(url: str, folder: Path, items: int, done: Callable[[int, Outputs], None]) -> None:
    """Search all items against a server, with the cache in this folder."""
    with (
        closing(ResponseCache(folder / "answers.sqlite")) as cache,
        model_at(url, capabilities_of(COMPLIANT), cache=cache, max_concurrency=MAX_CONCURRENCY) as model,
        ThreadPoolExecutor(MAX_CONCURRENCY) as pool,
    ):
        results = pool.map(lambda item: search(model, item, "speculative"), range(items))
        for item, (outputs, _) in enumerate(results):
            done(item, outputs)


def show(item: int, outputs: Outputs) -> None:
    sys.stdout.write(json.dumps([item, outputs]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    retry.FIRST_WAIT = 0.01
    run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), show)
