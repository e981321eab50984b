"""The probe detects what a server supports, in few requests, and the result is saved."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.errors import UnknownName
from fewparse.lm.http.capabilities import Capabilities, capabilities_path, load_capabilities, save_capabilities
from fewparse.lm.http.capability_table import table
from fewparse.lm.http.client import HttpClient
from fewparse.lm.http.load import RemoteSettings, open_remote, probe_model
from fewparse.lm.http.probe import probe
from fewparse.lm.http.remote import RemoteModel
from fewparse.lm.http.request_fields import RequestFields
from fewparse.retry import RetryPolicy
from support.faulty_proxy import FaultyProxy, error, too_many
from support.server_behaviours import COMPLIANT, LLAMA_CPP, LLAMA_CPP_PYTHON, Behaviour
from support.toy_model import END, TOKENS, ToyModel
from support.toy_server import ToyServer

SEEDS = range(12)
MAX_REQUESTS = 30
OF_A_COMPLIANT_SERVER: dict[str, Any] = {
    "chat": False,
    "logprobs_format": "legacy",
    "top_logprobs": len(TOKENS),
    "unrestricted_sampling": True,
    "max_n": 64,
    "distinct_samples": True,
    "seed": True,
    "stop": "shown",
    "untempered": True,
    "prompt_ids": False,
    "prompt_lists": True,
    "echo": True,
    "max_tokens_zero": True,
    "tokenizer": None,
    "grammar": None,
    "continuation": None,
    "slots": None,
    "context_length": None,
    "end_ids": (),
    "tokens": None,
    "fields": {"limit": "max_tokens", "omitted": (), "extra_tokens": 0, "effort": None},
    "ignored": (),
}
OF_LLAMA_CPP = OF_A_COMPLIANT_SERVER | {
    "logprobs_format": "content",
    "max_n": 4,
    "stop": "hidden",
    "prompt_ids": True,
    "echo": False,
    "max_tokens_zero": False,
    "tokenizer": "llama.cpp",
    "grammar": "gbnf",
    "slots": 4,
    "context_length": 4096,
    "end_ids": (END,),
    "tokens": len(TOKENS),
}
OF_A_CHAT = OF_A_COMPLIANT_SERVER | {
    "chat": True,
    "logprobs_format": "content",
    "top_logprobs": 100,
    "prompt_lists": False,
    "echo": False,
    "max_tokens_zero": False,
}


@contextmanager
def connected(behaviour: Behaviour, seed: int = 0) -> Iterator[tuple[HttpClient, ToyServer]]:
    with ToyServer(behaviour, ToyModel(seed)) as toy:
        client = HttpClient(toy.url)
        try:
            yield client, toy
        finally:
            client.close()


def deviation(behaviour: Behaviour) -> str:
    """The fields that differ from a compliant server."""
    return ",".join(f"{name}={value}" for name, value in vars(behaviour).items() if value != vars(COMPLIANT)[name])


def capabilities_found(behaviour: Behaviour, seed: int = 0, chat: bool = False) -> dict[str, Any]:
    with connected(behaviour, seed) as (client, toy):
        capabilities = probe(client, behaviour.model, chat)
    assert len(toy.requests) <= MAX_REQUESTS
    return capabilities.as_dict()


@pytest.mark.parametrize("seed", SEEDS)
def test_capabilities_do_not_depend_on_the_models_output(seed: int) -> None:
    assert capabilities_found(COMPLIANT, seed) == OF_A_COMPLIANT_SERVER
    assert capabilities_found(LLAMA_CPP, seed) == OF_LLAMA_CPP
    other = {"max_n": 1, "distinct_samples": False, "prompt_lists": False, "echo": False}
    assert capabilities_found(LLAMA_CPP_PYTHON, seed) == OF_A_COMPLIANT_SERVER | other


@pytest.mark.parametrize(
    ("behaviour", "differs"),
    [
        (Behaviour(rejected_fields=frozenset({"min_p"})), {"unrestricted_sampling": False}),
        (Behaviour(tokenize="vllm"), {"tokenizer": "vllm"}),
        (Behaviour(tokenize="llama.cpp"), {"tokenizer": "llama.cpp", "end_ids": (END,)}),
        (
            Behaviour(tokenize="vllm", logprob_format="content"),
            {"tokenizer": "vllm", "logprobs_format": "content", "prompt_ids": True},
        ),
        (
            Behaviour(tokenize="vllm", logprob_format="content", accepts_token_ids=False),
            {"tokenizer": "vllm", "logprobs_format": "content"},
        ),
        (Behaviour(models_report="max_model_len", context_length=999), {"context_length": 999}),
        (Behaviour(models_report="meta", context_length=888), {"context_length": 888}),
        (Behaviour(props=True, max_n=3, context_length=777), {"slots": 3, "context_length": 777, "max_n": 3}),
        (Behaviour(accepts_prompt_lists=False), {"prompt_lists": False}),
        (Behaviour(first_prompt_only=True), {"prompt_lists": False}),
        (Behaviour(echo="ignored"), {"echo": False}),
        (Behaviour(echo="off_by_one"), {"echo": False}),
        (Behaviour(n="ignored"), {"max_n": 1, "distinct_samples": False}),
        (Behaviour(n="rejected"), {"max_n": 1, "distinct_samples": False}),
        (Behaviour(max_n=2), {"max_n": 2}),
        (Behaviour(max_n=7), {"max_n": 6}),
        (Behaviour(max_n=10), {"max_n": 10}),
        (Behaviour(extra_choices=1), {"max_n": 1, "distinct_samples": False, "prompt_lists": False}),
        (Behaviour(reorders_choices=True), {}),
        (Behaviour(max_tokens_zero="one_token"), {"max_tokens_zero": False}),
        (Behaviour(max_tokens_zero="rejected"), {"max_tokens_zero": False}),
        (Behaviour(stop="hidden"), {"stop": "hidden"}),
        (Behaviour(stop="ignored"), {"stop": "ignored"}),
        (Behaviour(seed="ignored"), {"seed": False}),
        (Behaviour(same_samples=True), {"distinct_samples": False}),
        (Behaviour(grammar="gbnf"), {"grammar": "gbnf"}),
        (Behaviour(grammar="structured_outputs"), {"grammar": "structured_outputs"}),
        (Behaviour(grammar="guided_grammar"), {"grammar": "guided_grammar"}),
        (Behaviour(other_grammars="ignored"), {}),
        (Behaviour(logprob_format="content"), {"logprobs_format": "content"}),
        (Behaviour(max_logprobs=5), {"top_logprobs": 5, "echo": False}),  # too few to verify an echo
        (Behaviour(max_logprobs=1), {"top_logprobs": 1, "echo": False}),
        (Behaviour(max_logprobs=60), {"top_logprobs": 50}),
        (Behaviour(capped_logprobs=20), {"top_logprobs": 20, "echo": False}),
        (Behaviour(tempered_logprobs=True), {"untempered": False}),
        (Behaviour(end_shown=False), {}),
        (Behaviour(reports_usage=False), {}),
        (
            Behaviour(logprob_format="content", reports_token_ids=False, models_report="meta"),
            {"logprobs_format": "content", "context_length": 4096},
        ),
        (replace(LLAMA_CPP, capped_logprobs=40), OF_LLAMA_CPP | {"top_logprobs": 40, "tokens": None}),
    ],
    ids=lambda value: deviation(value) if isinstance(value, Behaviour) else "",
)
def test_each_deviating_behaviour_is_detected(behaviour: Behaviour, differs: dict[str, Any]) -> None:
    assert capabilities_found(behaviour) == OF_A_COMPLIANT_SERVER | differs


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("behaviour", "differs"),
    [
        (Behaviour(stop="hidden"), {"stop": "hidden"}),
        (Behaviour(stop="ignored"), {"stop": "ignored"}),
        (Behaviour(echo="off_by_one"), {"echo": False}),
        (Behaviour(seed="ignored"), {"seed": False}),
        (Behaviour(tempered_logprobs=True), {"untempered": False}),
        (Behaviour(same_samples=True), {"distinct_samples": False}),
    ],
    ids=lambda value: deviation(value) if isinstance(value, Behaviour) else "",
)
def test_deviating_behaviour_is_detected_for_all_seeds(
    behaviour: Behaviour, differs: dict[str, Any], seed: int
) -> None:
    assert capabilities_found(behaviour, seed) == OF_A_COMPLIANT_SERVER | differs


def continuation(behaviour: Behaviour, seed: int) -> Any:
    return capabilities_found(behaviour, seed, chat=True)["continuation"]


def test_each_kind_of_continuation_is_detected() -> None:
    kinds = {"always": "plain", "continue_final_message": "continue_final_message", "prefix": "prefix"}
    for flag, kind in kinds.items():
        seen = [continuation(replace(COMPLIANT, supports_prefix=flag), seed) for seed in SEEDS]  # type: ignore[arg-type]
        assert set(seen) <= {kind, None}  # None: not conclusive if the model ends immediately or repeats itself
        assert seen.count(kind) >= 3


@pytest.mark.parametrize("seed", range(40))
def test_a_server_without_continuation_is_never_taken_for_one_with_it(seed: int) -> None:
    assert continuation(COMPLIANT, seed) is None


def test_a_repeated_prefix_does_not_hide_continuation() -> None:
    repeating = replace(COMPLIANT, supports_prefix="always", repeats_prefix=True)
    assert [continuation(repeating, seed) for seed in SEEDS] == [
        continuation(replace(COMPLIANT, supports_prefix="always"), seed) for seed in SEEDS
    ]


def test_chat_capabilities() -> None:
    seed = next(seed for seed in SEEDS if continuation(LLAMA_CPP, seed))
    assert capabilities_found(COMPLIANT, seed, chat=True) == OF_A_CHAT
    own = {"max_n": 4, "stop": "hidden", "grammar": "gbnf", "continuation": "plain"}
    reported = {"slots": 4, "context_length": 4096, "end_ids": (END,)}
    assert capabilities_found(LLAMA_CPP, seed, chat=True) == OF_A_CHAT | own | reported


def test_repeated_status_500_means_unsupported_and_429_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewparse.retry.FIRST_WAIT", 0.01)
    with ToyServer(replace(COMPLIANT, accepts_prompt_lists=False)) as toy:
        client = HttpClient(toy.url)
        probe(client, "toy")
        lists = next(
            i
            for i, request in enumerate(toy.requests)
            if request.body and isinstance(request.body.get("prompt"), list)
        )
        client.close()
    with ToyServer() as toy, FaultyProxy(toy.url, [None] * lists + [error(500)] * 5) as proxy:
        client = HttpClient(proxy.url)
        assert not probe(client, "toy").prompt_lists
        client.close()
    with ToyServer() as toy, FaultyProxy(toy.url, [None] * lists + [too_many(0.01)] * 6) as proxy:
        client = HttpClient(proxy.url)
        assert probe(client, "toy").prompt_lists
        client.close()


def test_the_table_has_a_row_for_each_capability() -> None:
    with connected(LLAMA_CPP) as (client, _):
        shown = {feature: (result, consequence) for feature, result, consequence in table(probe(client, "toy"))}
    rows = {
        "log-probabilities": "content format",
        "alternatives per position": "260",
        "vocabulary": "260 tokens",
        "before temperature": "yes",
        "n": "up to 4",
        "samples of one request differ": "yes",
        "same seed, same sample": "yes",
        "unrestricted sampling (top_k, min_p)": "yes",
        "stop": "hidden",
        "prompts as token ids": "yes",
        "lists of prompts": "yes",
        "echo": "no",
        "max_tokens 0": "no",
        "tokenizer": "llama.cpp",
        "grammar": "gbnf",
        "context length": "4096",
        "parallel slots": "4",
    }
    assert {feature: result for feature, (result, _) in shown.items()} == rows
    assert shown["lists of prompts"][1] == "not used: each slot would process the prompt"
    chat = Capabilities(**(OF_A_CHAT | {"tokens": None, "fields": RequestFields()}))
    chat_features = {feature for feature, _, _ in table(chat)}
    own = {"prompts as token ids", "lists of prompts", "echo", "max_tokens 0", "tokenizer"}
    assert chat_features == rows.keys() - own | {"continues an assistant prefix"}


def test_capabilities_are_saved_for_each_server_model_and_kind(isolated_cache: Path) -> None:
    with ToyServer(replace(LLAMA_CPP, any_model=True)) as toy, ToyServer() as other:
        for server, kind, name in (
            (toy, "openai", "toy"),
            (other, "openai", "toy"),
            (toy, "openai", "another"),
            (toy, "openai-chat", "toy"),
        ):
            settings = RemoteSettings(base_url=server.url)
            server.requests.clear()
            first = probe_model(kind, name, settings)
            assert server.requests
            server.requests.clear()
            again = probe_model(kind, name, settings)
            assert server.requests == []
            assert again[1:] == first[1:]
            fresh = probe_model(kind, name, settings, refresh=True)
            assert server.requests
            assert fresh[2] == first[2]


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"version": 0}', '{"version": 4, "capabilities": {}}'])
def test_a_damaged_file_is_ignored_and_rewritten(isolated_cache: Path, damage: str) -> None:
    with ToyServer(LLAMA_CPP) as toy:
        settings = RemoteSettings(base_url=toy.url)
        first = probe_model("openai", "toy", settings)
        file = capabilities_path(first[0].url, "toy", chat=False)
        assert file.is_relative_to(isolated_cache)
        file.write_text(damage, encoding="utf-8")
        assert load_capabilities(first[0].url, "toy", chat=False) is None
        again = probe_model("openai", "toy", settings)
        assert load_capabilities(first[0].url, "toy", chat=False) == first[2] == again[2]


def test_a_file_of_another_version_is_ignored(isolated_cache: Path) -> None:
    capabilities = Capabilities(**(OF_A_CHAT | {"tokens": None, "fields": RequestFields()}))
    save_capabilities(capabilities, "there", "it")
    file = capabilities_path("there", "it", chat=True)
    reported = json.loads(file.read_text(encoding="utf-8"))
    assert load_capabilities("there", "it", chat=True) == capabilities
    file.write_text(json.dumps(reported | {"version": reported["version"] + 1}), encoding="utf-8")
    assert load_capabilities("there", "it", chat=True) is None


def test_an_unwritable_folder_is_ignored(isolated_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (isolated_cache / "file").touch()
    monkeypatch.setenv("FEWPARSE_CACHE", str(isolated_cache / "file"))
    save_capabilities(Capabilities(**(OF_A_CHAT | {"tokens": None, "fields": RequestFields()})), "there", "it")
    assert load_capabilities("there", "it", chat=True) is None


def test_an_unknown_model_is_reported_with_similar_names(isolated_cache: Path) -> None:
    with ToyServer(Behaviour(model="pear")) as toy, pytest.raises(UnknownName) as caught:
        open_remote("openai", "paer", RemoteSettings(base_url=toy.url, retry=RetryPolicy(5, 5)))
    assert caught.value.hint == "Did you mean pear?"


def test_the_llama_cpp_server_behaves_like_the_toy_server(served_model: RemoteModel) -> None:
    reported = served_model._capabilities.as_dict()
    assert served_model.vocabulary is not None
    size = len(served_model.vocabulary)
    assert reported == OF_LLAMA_CPP | {
        "top_logprobs": size,
        "tokens": size,
        "context_length": 8192,
        "end_ids": (0, 2),
    }


def test_the_llama_cpp_chat_behaves_like_the_toy_server(llama_server: str, isolated_cache: Path) -> None:
    _, _, capabilities = probe_model("openai-chat", "", RemoteSettings(base_url=llama_server))
    own = {"max_n": 4, "stop": "hidden", "grammar": "gbnf", "continuation": "plain"}
    reported = {"slots": 4, "context_length": 8192, "end_ids": (0, 2)}
    assert capabilities.as_dict() == OF_A_CHAT | own | reported
