"""Many searches at once through a real model: run by tests, in their own process or in one that is killed.

As a module: python -m lm.http.drill URL CACHE_FOLDER ITEMS; a JSON list for each item in its turn.
"""

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from fewparse.constrain.trie import Trie
from fewparse.lm.http import client
from fewparse.lm.model import LanguageModel
from fewparse.lm.response_cache import ResponseCache
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt
from fewparse.search.decode import decode
from fewparse.search.settings import SearchSettings
from fewparse.vocabulary import BYTES
from support.remote_models import abilities_of, model_at
from support.server_behaviours import HONEST

AT_ONCE = 8
WORDS = ["a", "ab", "abc", "b", "bca", "cab", "cc", "acb", "bb", "caab"]
DECODERS = {
    "speculative": SearchSettings(width=3, temperature=1.0, max_tokens=8, rounds=3, alternatives=10),
    "beam": SearchSettings(decoder="beam", width=2, max_tokens=8),
}
Found = list[tuple[str, float]]


def search(model: LanguageModel, item: int, decoder: str) -> tuple[Found, Usage]:
    """The outputs of one item with their scores, and what they took."""
    usage = Usage()
    prompt = Prompt((Part(f"item {item}: ", False),))
    constraint = Trie(WORDS, model.vocabulary or BYTES)
    found = decode(model, prompt, constraint, DECODERS[decoder], usage)
    return [(h.text.decode(), round(h.score, 9)) for h in found], usage


def search_all(model: LanguageModel, items: int, decoder: str) -> list[tuple[Found, Usage]]:
    """All items, several at once, in their order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda item: search(model, item, decoder), range(items)))


def run(url: str, folder: Path, items: int, done: Callable[[int, Found], None]) -> None:
    """All items against a server, with the cache of this folder."""
    with (
        closing(ResponseCache(folder / "answers.sqlite")) as cache,
        model_at(url, abilities_of(HONEST), cache=cache, max_concurrency=AT_ONCE) as model,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        answers = pool.map(lambda item: search(model, item, "speculative"), range(items))
        for item, (found, _) in enumerate(answers):
            done(item, found)


def show(item: int, found: Found) -> None:
    sys.stdout.write(json.dumps([item, found]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    client.SHORTEST_WAIT = 0.01
    run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), show)
