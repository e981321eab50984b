"""Each field of each response with a wrong value: an answer or an error with a message, never a traceback."""

import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.constrain.trie import Trie
from fewparse.errors import FewparseError
from fewparse.lm.http.capabilities import capabilities_path, load_capabilities, save_capabilities
from fewparse.lm.http.capability_table import table
from fewparse.lm.http.load import RemoteSettings, open_remote, probe_model
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.model import Sampling
from fewparse.lm.response_cache import ResponseCache, response_cache_path
from fewparse.lm.response_store import checksum
from fewparse.lm.usage import Usage
from fewparse.retry import RetryPolicy
from fewparse.search.decode import decode
from fewparse.search.settings import SearchSettings
from fewparse.text import is_unicode, to_json
from fewparse.vocabulary import BYTES
from support.campaign import sizes
from support.hostile_servers import MISSING, WRONG_VALUES, FixedMutation, MutatingServer, Mutation, mutations
from support.prompts import plain_prompt
from support.remote_models import capabilities_of
from support.server_behaviours import COMPLIANT, LLAMA_CPP, Behaviour
from support.toy_server import ToyServer

RETRY = RetryPolicy(timeout=5, deadline=5, max_attempts=2)
PROMPT = plain_prompt("a pear: ")
WORDS = ["a", "ab", "abc", "bca", "cc"]
SEARCHES = [
    SearchSettings(width=2, temperature=1.0, max_tokens=6, rounds=2, alternatives=10),
    SearchSettings(decoder="beam", width=2, max_tokens=6),
]
LLAMA = replace(LLAMA_CPP, grammar=None)  # the toy server has no grammars other than literals
VLLM = Behaviour(tokenize="vllm", models_report="max_model_len", logprob_format="content")
CASES = [
    (COMPLIANT, "openai", "/v1/completions"),
    (LLAMA, "openai", "/v1/completions"),
    (LLAMA, "openai", "/tokenize"),
    (LLAMA, "openai", "/v1/models"),
    (LLAMA, "openai", "/props"),
    (VLLM, "openai", "/tokenize"),
    (VLLM, "openai", "/v1/models"),
    (LLAMA, "openai-chat", "/v1/chat/completions"),
    (LLAMA, "openai-chat", "/props"),
]


def use(model: RemoteModel) -> None:
    """Use all of a model: samples, next tokens, scores, tokens and searches, and what is shown of them."""
    usage = Usage()
    token = model.tokenize("ab")
    completions = model.sample(PROMPT, [()], Sampling(3, 1.0, 6), usage)
    model.next_tokens(PROMPT, [(), token], 5, b"\n", usage)
    for settings in SEARCHES:
        constraint = Trie(WORDS, model.vocabulary or BYTES)
        for hypothesis in decode(model, PROMPT, constraint, settings, usage):
            assert hypothesis.text.decode() in WORDS
            assert hypothesis.score <= 0
    with suppress(FewparseError):
        model.score(PROMPT, [()], [token], usage)
    for group in completions:
        for completion in group:
            assert all(logprob <= 0 for logprob in completion.logprobs), "neither NaN nor positive"
    assert usage.prompt_tokens >= 0


def check(settings: RemoteSettings, kind: str, name: str) -> None:
    """Probe a server, show the result, open a model and use it."""
    _, _, found = probe_model(kind, name, settings)
    assert all(is_unicode(cell) for row in table(found) for cell in row)
    assert json.loads(to_json(found.as_dict()))["chat"] == (kind == "openai-chat")
    with closing(open_remote(kind, name, settings)) as model:
        use(model)


def error_of(settings: RemoteSettings, kind: str, name: str) -> FewparseError | None:
    try:
        check(settings, kind, name)
    except FewparseError as error:
        return error
    return None


@pytest.mark.parametrize(("behaviour", "kind", "endpoint"), CASES)
def test_the_unchanged_responses_are_answers(behaviour: Behaviour, kind: str, endpoint: str) -> None:
    with ToyServer(behaviour) as server:
        check(RemoteSettings(server.url, retry=RETRY), kind, "toy")
        assert endpoint in {request.path for request in server.requests}


@sizes("count", 8, 150)
@pytest.mark.parametrize(("behaviour", "kind", "endpoint"), CASES)
def test_a_wrong_field_of_a_response_is_an_answer_or_an_error(
    behaviour: Behaviour, kind: str, endpoint: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(count):
        monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path / str(seed)))
        with MutatingServer(behaviour, endpoint, seed) as server:
            error = error_of(RemoteSettings(server.url, retry=RETRY), kind, "" if seed % 2 else "toy")
        assert error is None or (is_unicode(str(error)) and len(error.message) < 2000)


REPORTED = [
    ("/props", ("total_slots",)),
    ("/props", ("default_generation_settings",)),
    ("/props", ("default_generation_settings", "n_ctx")),
    ("/v1/models", ("data",)),
    ("/v1/models", ("data", 0)),
    ("/v1/models", ("data", 0, "id")),
    ("/v1/models", ("data", 0, "meta")),
    ("/v1/models", ("data", 0, "meta", "n_vocab")),
    ("/v1/models", ("data", 0, "meta", "n_ctx")),
]


@pytest.mark.parametrize(("endpoint", "path"), REPORTED, ids=lambda value: str(value))
def test_a_wrong_report_is_treated_as_unknown(
    endpoint: str, path: tuple[str | int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(str(path))
    for value in draw.sample([*WRONG_VALUES, MISSING], 8):
        monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path / str(id(value))))
        with FixedMutation(LLAMA, endpoint, Mutation(path, value)) as server:
            settings = RemoteSettings(server.url, retry=RETRY)
            _, _, found = probe_model("openai", "toy", settings)
            assert found.slots is None or 1 <= found.slots <= 1024
            assert found.context_length is None or found.context_length >= 1
            with closing(open_remote("openai", "toy", settings)) as model:
                use(model)


def test_the_probe_says_which_report_is_not_valid() -> None:
    with FixedMutation(LLAMA, "/props", Mutation(("total_slots",), "\x1b[31mabc")) as server:
        _, _, found = probe_model("openai", "toy", RemoteSettings(server.url, retry=RETRY))
    assert found.ignored == (r"total_slots is '\x1b[31mabc': input should be a valid integer",)
    assert ("not valid", found.ignored[0], "treated as not reported") in list(table(found))


@contextmanager
def saved_file(behaviour: Behaviour) -> Iterator[tuple[str, Path]]:
    """A server and the file with its capabilities."""
    with ToyServer(behaviour) as server:
        save_capabilities(capabilities_of(behaviour), server.url, "toy")
        yield server.url, capabilities_path(server.url, "toy", chat=False)


@sizes("count", 60, 600)
@pytest.mark.parametrize("behaviour", [COMPLIANT, LLAMA], ids=["compliant", "llama.cpp"])
def test_a_wrong_field_of_saved_capabilities_is_no_problem(behaviour: Behaviour, count: int) -> None:
    draw = random.Random(7)
    with saved_file(behaviour) as (url, file):
        saved = json.loads(file.read_text(encoding="utf-8"))
        assert load_capabilities(url, "toy", chat=False) == capabilities_of(behaviour)
        for _, mutation in zip(range(count), mutations(saved, draw), strict=False):
            file.write_text(json.dumps(mutation.apply(saved)), encoding="utf-8")
            if load_capabilities(url, "toy", chat=False) is not None:
                error_of(RemoteSettings(url, retry=RETRY), "openai", "toy")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slots", 10**9),
        ("slots", "abc"),
        ("context_length", -1),
        ("top_logprobs", 0),
        ("max_n", 10**12),
        ("max_n", 2.5),
        ("stop", "unknown"),
        ("tokenizer", []),
        ("end_ids", [10**6]),
        ("end_ids", 7),
        ("tokens", ["***"]),
        ("tokens", [7]),
        ("chat", True),
        ("chat", 0),
    ],
)
def test_saved_capabilities_with_a_wrong_value_are_ignored(field: str, value: Any) -> None:
    with saved_file(LLAMA) as (url, file):
        saved = json.loads(file.read_text(encoding="utf-8"))
        saved["capabilities"][field] = value
        file.write_text(json.dumps(saved), encoding="utf-8")
        assert load_capabilities(url, "toy", chat=False) is None


def test_a_pipe_or_a_folder_as_saved_capabilities_is_ignored(isolated_cache: Path) -> None:
    file = capabilities_path("there", "toy", chat=False)
    file.parent.mkdir(parents=True)
    os.mkfifo(file)
    assert load_capabilities("there", "toy", chat=False) is None
    file.unlink()
    file.mkdir()
    assert load_capabilities("there", "toy", chat=False) is None


@sizes("count", 25, 200)
def test_a_wrong_cached_response_is_requested_again_or_an_error(count: int) -> None:
    draw = random.Random(3)
    with ToyServer() as server:
        settings = RemoteSettings(server.url, retry=RETRY)
        with closing(open_remote("openai", "toy", settings)) as model:
            use(model)
        original = rows()
        assert original
        for _ in range(count):
            changed = {}
            for key, text in original.items():
                mutation = next(mutations(json.loads(text), draw))
                changed[key] = json.dumps(mutation.apply(json.loads(text)))
            rewrite(changed)
            with closing(open_remote("openai", "toy", settings)) as model, suppress(FewparseError):
                use(model)


def rows() -> dict[str, str]:
    with closing(ResponseCache(response_cache_path())) as cache:
        cache.get("nothing")  # creates the file
    with closing(sqlite3.connect(response_cache_path())) as connection:
        return dict(connection.execute("SELECT key, value FROM responses"))


def rewrite(values: dict[str, str]) -> None:
    """Replace the texts of all responses, with matching checksums."""
    with closing(sqlite3.connect(response_cache_path())) as connection, connection:
        for key, text in values.items():
            connection.execute(
                "UPDATE responses SET value = ?, size = ?, checksum = ? WHERE key = ?",
                (text, len(text), checksum(key, text.encode()), key),
            )


WRONG_ROWS = {
    "value": [b"\xff\xfe", 7, 1.5, "", "{", "[" * 100_000, "null", "7", '"text"', "NaN", '{"choices": 7}'],
    "last_used": ["never", 1e300, -1e300, b"\x00", float("inf")],
    "created": ["never", 1e300, -1e300, b"\x00", float("inf")],
    "size": ["large", -(2**62), 2**62],
    "checksum": ["none", -1, 2**62, 1.5],
}


@pytest.mark.parametrize("column", WRONG_ROWS)
def test_a_wrong_row_of_the_cache_counts_as_absent(column: str, tmp_path: Path) -> None:
    for number, value in enumerate(WRONG_ROWS[column]):
        path = tmp_path / f"{number}.sqlite"
        warnings: list[str] = []
        with closing(ResponseCache(path, on_warning=warnings.append)) as cache:
            cache.put("key", {"fine": True})
            cache.put("other", {"fine": True})
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE responses SET {column} = ? WHERE key = 'key'", (value,))
            if column == "value":
                text = connection.execute("SELECT CAST(value AS BLOB) FROM responses WHERE key = 'key'").fetchone()
                number_of_text = checksum("key", text[0])
                connection.execute("UPDATE responses SET checksum = ? WHERE key = 'key'", (number_of_text,))
        with closing(ResponseCache(path, on_warning=warnings.append)) as cache:
            found = cache.get("key")
            assert column == "value" or found in (None, {"fine": True})
            if column != "size":
                assert cache.get("other") == {"fine": True}, "other rows are not affected"
            cache.statistics()
            cache.put("key", {"new": True})
            assert cache.get("key") == {"new": True}
