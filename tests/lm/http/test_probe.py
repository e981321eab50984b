"""The probe finds out what a server really does, in few questions, and it is remembered."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.errors import ServerUnfit, UnknownName
from fewparse.lm.http.capabilities import Capabilities, place, remember, remembered
from fewparse.lm.http.client import RetryPolicy, Server
from fewparse.lm.http.load import RemoteSettings, examined, open_remote
from fewparse.lm.http.probe import probe
from fewparse.lm.http.remote import RemoteModel
from support.faulty_proxy import FaultyProxy, error, too_many
from support.server_behaviours import HONEST, LLAMA_CPP, LLAMA_CPP_PYTHON, Manners
from support.toy_model import END, TOKENS, ToyModel
from support.toy_server import ToyServer

SEEDS = range(12)
MOST_QUESTIONS = 30
OF_AN_HONEST_SERVER: dict[str, Any] = {
    "chat": False,
    "logprobs": "legacy",
    "top": len(TOKENS),
    "plain_sampling": True,
    "n": 64,
    "distinct": True,
    "seed": True,
    "stop": "shown",
    "untempered": True,
    "ids": False,
    "lists": True,
    "echo": True,
    "max_tokens_zero": True,
    "tokenize": None,
    "grammar": None,
    "continuation": None,
    "slots": None,
    "context": None,
    "end_ids": (),
    "tokens": None,
}
OF_LLAMA_CPP = OF_AN_HONEST_SERVER | {
    "logprobs": "content",
    "n": 4,
    "stop": "hidden",
    "ids": True,
    "echo": False,
    "max_tokens_zero": False,
    "tokenize": "llama.cpp",
    "grammar": "gbnf",
    "slots": 4,
    "context": 4096,
    "end_ids": (END,),
    "tokens": len(TOKENS),
}
OF_A_CHAT = OF_AN_HONEST_SERVER | {
    "chat": True,
    "logprobs": "content",
    "top": 100,
    "lists": False,
    "echo": False,
    "max_tokens_zero": False,
}


@contextmanager
def connected(manners: Manners, seed: int = 0) -> Iterator[tuple[Server, ToyServer]]:
    with ToyServer(manners, ToyModel(seed)) as toy:
        server = Server(toy.url)
        try:
            yield server, toy
        finally:
            server.close()


def named(manners: Manners) -> str:
    """What is not as an honest server does it."""
    return ",".join(f"{name}={value}" for name, value in vars(manners).items() if value != vars(HONEST)[name])


def found(manners: Manners, seed: int = 0, chat: bool = False) -> dict[str, Any]:
    with connected(manners, seed) as (server, toy):
        capabilities = probe(server, manners.model, chat)
    assert len(toy.requests) <= MOST_QUESTIONS
    return capabilities.as_dict()


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_the_model_says_its_server_is_found_out(seed: int) -> None:
    assert found(HONEST, seed) == OF_AN_HONEST_SERVER
    assert found(LLAMA_CPP, seed) == OF_LLAMA_CPP
    other = {"n": 1, "distinct": False, "lists": False, "echo": False}
    assert found(LLAMA_CPP_PYTHON, seed) == OF_AN_HONEST_SERVER | other


@pytest.mark.parametrize(
    ("manners", "differs"),
    [
        (Manners(refused_fields=frozenset({"min_p"})), {"plain_sampling": False}),
        (Manners(tokenize="vllm"), {"tokenize": "vllm"}),
        (Manners(tokenize="llama.cpp"), {"tokenize": "llama.cpp", "end_ids": (END,)}),
        (
            Manners(tokenize="vllm", logprob_format="content"),
            {"tokenize": "vllm", "logprobs": "content", "ids": True},
        ),
        (
            Manners(tokenize="vllm", logprob_format="content", takes_ids=False),
            {"tokenize": "vllm", "logprobs": "content"},
        ),
        (Manners(models_tell="max_model_len", context_length=999), {"context": 999}),
        (Manners(models_tell="meta", context_length=888), {"context": 888}),
        (Manners(props=True, most_n=3, context_length=777), {"slots": 3, "context": 777, "n": 3}),
        (Manners(takes_lists=False), {"lists": False}),
        (Manners(lists_answered_once=True), {"lists": False}),
        (Manners(echo="ignored"), {"echo": False}),
        (Manners(echo="off_by_one"), {"echo": False}),
        (Manners(n="ignored"), {"n": 1, "distinct": False}),
        (Manners(n="refused"), {"n": 1, "distinct": False}),
        (Manners(most_n=2), {"n": 2}),
        (Manners(most_n=7), {"n": 6}),
        (Manners(most_n=10), {"n": 10}),
        (Manners(wrong_choices=1), {"n": 1, "distinct": False, "lists": False}),
        (Manners(reordered=True), {}),
        (Manners(max_tokens_zero="one_token"), {"max_tokens_zero": False}),
        (Manners(max_tokens_zero="refused"), {"max_tokens_zero": False}),
        (Manners(stop="hidden"), {"stop": "hidden"}),
        (Manners(stop="ignored"), {"stop": "ignored"}),
        (Manners(seed="ignored"), {"seed": False}),
        (Manners(same_samples=True), {"distinct": False}),
        (Manners(grammar="gbnf"), {"grammar": "gbnf"}),
        (Manners(grammar="structured_outputs"), {"grammar": "structured_outputs"}),
        (Manners(grammar="guided_grammar"), {"grammar": "guided_grammar"}),
        (Manners(grammar_ignored=True), {}),
        (Manners(logprob_format="content"), {"logprobs": "content"}),
        (Manners(most_logprobs=5), {"top": 5, "echo": False}),  # too few to see whether an echo is right
        (Manners(most_logprobs=1), {"top": 1, "echo": False}),
        (Manners(most_logprobs=60), {"top": 50}),
        (Manners(silently_capped_logprobs=20), {"top": 20, "echo": False}),
        (Manners(tempered_logprobs=True), {"untempered": False}),
        (Manners(end_shown=False), {}),
        (Manners(usage_told=False), {}),
        (
            Manners(logprob_format="content", ids_told=False, models_tell="meta"),
            {"logprobs": "content", "context": 4096},
        ),
        (replace(LLAMA_CPP, silently_capped_logprobs=40), OF_LLAMA_CPP | {"top": 40, "tokens": None}),
    ],
    ids=lambda value: named(value) if isinstance(value, Manners) else "",
)
def test_every_single_behaviour_is_told_from_an_honest_servers(manners: Manners, differs: dict[str, Any]) -> None:
    assert found(manners) == OF_AN_HONEST_SERVER | differs


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("manners", "differs"),
    [
        (Manners(stop="hidden"), {"stop": "hidden"}),
        (Manners(stop="ignored"), {"stop": "ignored"}),
        (Manners(echo="off_by_one"), {"echo": False}),
        (Manners(seed="ignored"), {"seed": False}),
        (Manners(tempered_logprobs=True), {"untempered": False}),
        (Manners(same_samples=True), {"distinct": False}),
    ],
    ids=lambda value: named(value) if isinstance(value, Manners) else "",
)
def test_no_behaviour_is_missed_by_the_chance_of_what_the_model_says(
    manners: Manners, differs: dict[str, Any], seed: int
) -> None:
    assert found(manners, seed) == OF_AN_HONEST_SERVER | differs


def carried_on(manners: Manners, seed: int) -> Any:
    return found(manners, seed, chat=True)["continuation"]


def test_a_begun_answer_is_seen_to_be_carried_on_in_each_of_the_ways() -> None:
    ways = {"always": "plain", "continue_final_message": "continue_final_message", "prefix": "prefix"}
    for manner, way in ways.items():
        seen = [carried_on(replace(HONEST, supports_prefix=manner), seed) for seed in SEEDS]  # type: ignore[arg-type]
        assert set(seen) <= {way, None}  # None: a model that ends at once, or repeats itself, leaves it open
        assert seen.count(way) >= 3


@pytest.mark.parametrize("seed", range(40))
def test_a_server_that_begins_anew_is_never_taken_for_one_that_carries_on(seed: int) -> None:
    assert carried_on(HONEST, seed) is None


def test_a_text_that_repeats_the_beginning_is_carried_on_nevertheless() -> None:
    repeating = replace(HONEST, supports_prefix="always", begun_repeated=True)
    assert [carried_on(repeating, seed) for seed in SEEDS] == [
        carried_on(replace(HONEST, supports_prefix="always"), seed) for seed in SEEDS
    ]


def test_a_chat_has_rows_of_its_own() -> None:
    seed = next(seed for seed in SEEDS if carried_on(LLAMA_CPP, seed))
    assert found(HONEST, seed, chat=True) == OF_A_CHAT
    own = {"n": 4, "stop": "hidden", "grammar": "gbnf", "continuation": "plain"}
    told = {"slots": 4, "context": 4096, "end_ids": (END,)}
    assert found(LLAMA_CPP, seed, chat=True) == OF_A_CHAT | own | told


@pytest.mark.parametrize("chat", [False, True])
def test_a_server_without_log_probabilities_is_refused_with_a_way_out(chat: bool) -> None:
    with connected(Manners(logprob_format="none")) as (server, _), pytest.raises(ServerUnfit) as caught:
        probe(server, "toy", chat)
    assert "no log-probabilities" in caught.value.message
    assert "--model embedded" in str(caught.value.hint)


def test_a_failure_where_others_refuse_is_an_answer_after_a_few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fewparse.lm.http.client.SHORTEST_WAIT", 0.01)
    with ToyServer(replace(HONEST, takes_lists=False)) as toy:
        server = Server(toy.url)
        probe(server, "toy")
        lists = next(
            i for i, asked in enumerate(toy.requests) if asked.body and isinstance(asked.body.get("prompt"), list)
        )
        server.close()
    with ToyServer() as toy, FaultyProxy(toy.url, [None] * lists + [error(500)] * 5) as proxy:
        server = Server(proxy.url)
        assert not probe(server, "toy").lists
        server.close()
    with ToyServer() as toy, FaultyProxy(toy.url, [None] * lists + [too_many(0.01)] * 6) as proxy:
        server = Server(proxy.url)
        assert probe(server, "toy").lists
        server.close()


def test_the_table_has_a_row_for_everything_that_was_asked() -> None:
    with connected(LLAMA_CPP) as (server, _):
        table = {asked: (does, means) for asked, does, means in probe(server, "toy").table()}
    rows = {
        "log-probabilities": "content format",
        "alternatives a position": "260",
        "vocabulary": "260 tokens",
        "before temperature": "yes",
        "n": "up to 4",
        "samples of one request differ": "yes",
        "same seed, same sample": "yes",
        "plain sampling (top_k, min_p)": "yes",
        "stop": "hidden",
        "prompts as token ids": "yes",
        "lists of prompts": "yes",
        "echo": "no",
        "max_tokens 0": "no",
        "tokenizer": "llama.cpp",
        "grammar": "gbnf",
        "context": "4096",
        "at once": "4",
    }
    assert {asked: does for asked, (does, _) in table.items()} == rows
    assert table["lists of prompts"][1] == "not used: each of its slots would read the prompt"
    asked_of_chats = {asked for asked, _, _ in Capabilities(**(OF_A_CHAT | {"tokens": None})).table()}
    own = {"prompts as token ids", "lists of prompts", "echo", "max_tokens 0", "tokenizer"}
    assert asked_of_chats == rows.keys() - own | {"carries on a begun answer"}


def test_what_was_found_is_remembered_for_each_server_model_and_kind(alone: Path) -> None:
    with ToyServer(replace(LLAMA_CPP, any_model=True)) as toy, ToyServer() as other:
        for server, kind, name in (
            (toy, "openai", "toy"),
            (other, "openai", "toy"),
            (toy, "openai", "another"),
            (toy, "openai-chat", "toy"),
        ):
            remote = RemoteSettings(base_url=server.url)
            server.requests.clear()
            first = examined(kind, name, remote)
            assert server.requests
            server.requests.clear()
            again = examined(kind, name, remote)
            assert server.requests == []
            assert again[1:] == first[1:]
            anew = examined(kind, name, remote, anew=True)
            assert server.requests
            assert anew[2] == first[2]


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"version": 0}', '{"version": 1, "tokens": ["?"]}'])
def test_a_damaged_memory_is_none_and_is_written_anew(alone: Path, damage: str) -> None:
    with ToyServer(LLAMA_CPP) as toy:
        remote = RemoteSettings(base_url=toy.url)
        first = examined("openai", "toy", remote)
        file = place(first[0].url, "toy", chat=False)
        assert file.is_relative_to(alone)
        file.write_text(damage, encoding="utf-8")
        assert remembered(first[0].url, "toy", chat=False) is None
        again = examined("openai", "toy", remote)
        assert remembered(first[0].url, "toy", chat=False) == first[2] == again[2]


def test_a_memory_of_another_version_is_none(alone: Path) -> None:
    capabilities = Capabilities(**(OF_A_CHAT | {"tokens": None}))
    remember(capabilities, "there", "it")
    file = place("there", "it", chat=True)
    told = json.loads(file.read_text(encoding="utf-8"))
    assert remembered("there", "it", chat=True) == capabilities
    file.write_text(json.dumps(told | {"version": told["version"] + 1}), encoding="utf-8")
    assert remembered("there", "it", chat=True) is None


def test_where_nothing_can_be_written_nothing_is_remembered(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (alone / "file").touch()
    monkeypatch.setenv("FEWPARSE_CACHE", str(alone / "file"))
    remember(Capabilities(**(OF_A_CHAT | {"tokens": None})), "there", "it")
    assert remembered("there", "it", chat=True) is None


def test_an_unknown_model_is_told_with_those_that_are_known(alone: Path) -> None:
    with ToyServer(Manners(model="pear")) as toy, pytest.raises(UnknownName) as caught:
        open_remote("openai", "paer", RemoteSettings(base_url=toy.url, patience=RetryPolicy(5, 5)))
    assert caught.value.hint == "Did you mean pear?"


def test_llama_cpps_own_server_does_what_its_toy_does(served_model: RemoteModel) -> None:
    told = served_model._abilities.as_dict()
    assert served_model.vocabulary is not None
    size = len(served_model.vocabulary)
    assert told == OF_LLAMA_CPP | {"top": size, "tokens": size, "context": 8192, "end_ids": (0, 2)}


def test_llama_cpps_own_chat_does_what_its_toy_does(llama_server: str, alone: Path) -> None:
    _, _, capabilities = examined("openai-chat", "", RemoteSettings(base_url=llama_server))
    own = {"n": 4, "stop": "hidden", "grammar": "gbnf", "continuation": "plain"}
    told = {"slots": 4, "context": 8192, "end_ids": (0, 2)}
    assert capabilities.as_dict() == OF_A_CHAT | own | told
