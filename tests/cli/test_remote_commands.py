"""Commands with a model behind a server: what a user sees, whatever the server does."""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import Ended, fewparse
from support.server_behaviours import Manners
from support.toy_server import ToyServer

SETTINGS = """\
name = "letters"
[retrieve]
examples = 2
retriever = "bm25"
[constraint]
grammar = "grammar.lark"
[search]
width = 3
max_tokens = 12
"""
TAUGHT = ["a", "b", "ab", "bc", "abc"]
KEY = "sk-very-secret-9f3a"


def lines(programs: list[str]) -> str:
    return "".join(json.dumps({"utterance": f"say {p}", "program": p}) + "\n" for p in programs)


@pytest.fixture
def letters(tmp_path: Path) -> str:
    """A domain of the letters that the toy model likes."""
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "domain.toml").write_text(SETTINGS)
    (folder / "grammar.lark").write_text('start: ("a" | "b" | "c")+\n')
    (folder / "examples.jsonl").write_text(lines(TAUGHT))
    (folder / "test.jsonl").write_text(lines(["cab", "ca", "bca", "cc"]))
    return str(folder)


@pytest.fixture
def toy() -> Iterator[ToyServer]:
    with ToyServer() as server:
        yield server


@pytest.fixture
def apart(tmp_path: Path) -> dict[str, str]:
    """An environment without the user's cache, keys and addresses."""
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FEWPARSE_API_KEY", "FEWPARSE_BASE_URL")
    return {**dict.fromkeys(names, ""), "FEWPARSE_CACHE": str(tmp_path / "cache")}


def remote(
    command: str, domain: str, url: str, env: Mapping[str, str], *more: str, model: str = "openai:toy"
) -> Ended:
    """A command with a model behind this address."""
    said = ["say cab"] if command == "parse" else []
    return fewparse(command, domain, *said, "--model", model, "--base-url", url, *more, env=env)


def refused(ended: Ended, *words: str, code: int = 1) -> None:
    """The command failed with these words, and showed no secret."""
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("error: ")
    for word in words:
        assert word in ended.err
    assert KEY not in ended.err


@pytest.mark.parametrize("model", ["openai:toy", "openai:", "openai-chat:toy"])
def test_an_utterance_is_parsed_by_a_model_behind_a_server(
    model: str, letters: str, toy: ToyServer, apart: dict[str, str]
) -> None:
    ended = remote("parse", letters, toy.url, apart, "--json", model=model)
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert set(found["output"]) <= set("abc")
    assert found["model"] == f"{model.rstrip(':').partition(':')[0]}:toy@{toy.url}"
    assert found["usage"]["cost"] is None
    assert found["usage"]["requests"] > 0


def test_the_address_may_come_from_the_environment(letters: str, toy: ToyServer, apart: dict[str, str]) -> None:
    ended = fewparse(
        "parse", letters, "say cab", "--model", "openai:toy", env={**apart, "OPENAI_BASE_URL": toy.url}
    )
    assert ended.code == 0, ended.err
    assert toy.requests


def test_a_second_parse_sends_nothing_but_without_the_cache_it_does(
    letters: str, toy: ToyServer, apart: dict[str, str]
) -> None:
    first = json.loads(remote("parse", letters, toy.url, apart, "--json").out)
    sent = len(toy.requests)
    again = json.loads(remote("parse", letters, toy.url, apart, "--json").out)
    assert len(toy.requests) == sent
    assert again["candidates"] == first["candidates"]
    assert (again["usage"]["cached_requests"], again["usage"]["cost"]) == (again["usage"]["requests"], 0)
    fresh = json.loads(remote("parse", letters, toy.url, apart, "--json", "--no-cache").out)
    assert len(toy.requests) > sent
    assert fresh["usage"]["cached_requests"] == 0
    assert fresh["candidates"] == first["candidates"]


def test_explain_tells_requests_and_that_the_cost_is_unknown(
    letters: str, toy: ToyServer, apart: dict[str, str]
) -> None:
    ended = remote("parse", letters, toy.url, apart, "--explain")
    assert ended.code == 0, ended.err
    told = next(line for line in ended.out.splitlines() if " requests in " in line)
    assert "0 from the cache, 0 retried" in told
    assert told.endswith("cost unknown")


@pytest.mark.parametrize("command", ["parse", "eval"])
def test_the_usual_server_needs_a_key(command: str, letters: str, apart: dict[str, str]) -> None:
    said = ["say cab"] if command == "parse" else []
    ended = fewparse(command, letters, *said, "--model", "openai:gpt-4o", env=apart)
    refused(ended, "https://api.openai.com/v1 needs a key", "OPENAI_API_KEY", "--base-url", code=2)


@pytest.mark.parametrize("command", ["parse", "eval"])
def test_a_wrong_key_is_told_and_not_shown(command: str, letters: str, apart: dict[str, str]) -> None:
    with ToyServer(Manners(key="right")) as toy:
        ended = remote(command, letters, toy.url, {**apart, "OPENAI_API_KEY": KEY})
    refused(ended, "refuses the key", "***", "OPENAI_API_KEY")


def nobody_listens() -> str:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


@pytest.mark.parametrize("command", ["parse", "eval"])
def test_an_address_where_nobody_listens_is_told_soon(command: str, letters: str, apart: dict[str, str]) -> None:
    refused(remote(command, letters, nobody_listens(), apart), "the connection failed", "--base-url")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("localhost:8080/v1", "is no address of a server"),
        ("http://[half/v1", "cannot be read"),
        ("http://127.0.0.1:port/v1", "is no address of a server"),
    ],
)
def test_what_is_no_address_is_misuse(url: str, words: str, letters: str, apart: dict[str, str]) -> None:
    refused(remote("parse", letters, url, apart), words, code=2)


def test_a_web_page_is_no_server(letters: str, apart: dict[str, str]) -> None:
    with ToyServer(Manners(html=True)) as toy:
        refused(remote("parse", letters, toy.url, apart), "web page", "/v1")


def test_an_unknown_model_is_told_with_the_known_ones(letters: str, toy: ToyServer, apart: dict[str, str]) -> None:
    refused(remote("parse", letters, toy.url, apart, model="openai:toi"), "unknown model", "'toi'", "toy", code=2)


def test_a_model_that_only_chats_is_pointed_to_the_chat(letters: str, apart: dict[str, str]) -> None:
    with ToyServer(Manners(completions=False)) as toy:
        refused(remote("parse", letters, toy.url, apart), "status 404", "openai-chat:NAME")
        assert remote("parse", letters, toy.url, apart, model="openai-chat:toy").code == 0


def test_a_server_without_log_probabilities_is_unfit(letters: str, apart: dict[str, str]) -> None:
    with ToyServer(Manners(logprob_format="none")) as toy:
        refused(remote("parse", letters, toy.url, apart), "gives no log-probabilities", "--model embedded")


@pytest.mark.parametrize("told", ["nothing", "meta"])
def test_a_prompt_too_long_is_told_with_both_numbers(told: Any, letters: str, apart: dict[str, str]) -> None:
    with ToyServer(Manners(context_length=150, models_tell=told)) as toy:
        ended = fewparse(
            *("parse", letters, "say cab " * 200, "--model", "openai:toy", "--base-url", toy.url), env=apart
        )
    refused(ended, "the prompt needs ", "the model's context holds 150", "--examples")


def test_a_limit_in_dollars_needs_a_known_price(letters: str, toy: ToyServer, apart: dict[str, str]) -> None:
    ended = remote("parse", letters, toy.url, apart, "--max-cost", "1")
    refused(ended, "price of this model is unknown", "--max-tokens-total", code=2)


def test_a_budget_that_is_used_up_ends_an_evaluation_which_can_be_carried_on(
    letters: str, toy: ToyServer, apart: dict[str, str], tmp_path: Path
) -> None:
    out = ("--out", str(tmp_path / "out"), "--max-concurrency", "1")
    ended = remote("eval", letters, toy.url, apart, *out, "--max-tokens-total", "1500")
    refused(ended, "of 1500 tokens are spent", "of 4 items are done", "larger budget")
    carried_on = remote("eval", letters, toy.url, apart, *out, "--json")
    assert carried_on.code == 0, carried_on.err
    assert {row["items"] for row in json.loads(carried_on.out)["rows"]} == {4}


def test_an_evaluation_tells_what_it_took(letters: str, toy: ToyServer, apart: dict[str, str]) -> None:
    ended = remote("eval", letters, toy.url, apart, "--json")
    assert ended.code == 0, ended.err
    asked = json.loads(ended.out)["rows"][-1]
    assert asked["items"] == 4
    assert asked["requests"] > 0


@pytest.mark.parametrize(
    "option",
    [
        *(
            ["--base-url", "http://127.0.0.1/v1"],
            ["--max-concurrency", "2"],
            ["--timeout", "5"],
            ["--deadline", "5"],
        ),
        *(["--max-tokens-total", "9"], ["--max-cost", "1"], ["--context-length", "99"]),
    ],
    ids=lambda option: option[0],
)
def test_options_for_servers_are_refused_with_a_model_of_this_process(
    option: list[str], letters: str, apart: dict[str, str]
) -> None:
    ended = fewparse("parse", letters, "say cab", *option, env=apart)
    refused(ended, f"{option[0]} is for a model behind a server", "--model openai:NAME", code=2)


@pytest.mark.parametrize("option", ["--timeout", "--deadline"])
def test_patience_is_more_than_nothing(option: str, letters: str, apart: dict[str, str]) -> None:
    refused(remote("parse", letters, "http://127.0.0.1/v1", apart, option, "0"), "more than 0 seconds", code=2)


def test_a_damaged_cache_is_said_and_the_run_goes_on(letters: str, toy: ToyServer, apart: dict[str, str]) -> None:
    file = Path(apart["FEWPARSE_CACHE"]) / "responses.sqlite"
    file.parent.mkdir()
    file.write_bytes(b"no database at all")
    ended = remote("parse", letters, toy.url, apart)
    assert ended.code == 0
    assert ended.err.startswith(f"note: the response cache {file} is damaged")
    assert ended.out.startswith("say cab\n")
    assert remote("parse", letters, toy.url, apart).err == ""


def test_a_key_is_nowhere_in_the_cache(letters: str, apart: dict[str, str]) -> None:
    with ToyServer(Manners(key=KEY)) as toy:
        assert remote("parse", letters, toy.url, {**apart, "OPENAI_API_KEY": KEY}).code == 0
    kept = [file.read_bytes() for file in Path(apart["FEWPARSE_CACHE"]).rglob("*") if file.is_file()]
    assert kept
    assert not any(KEY.encode() in written for written in kept)


def test_probe_shows_what_a_server_does(toy: ToyServer, apart: dict[str, str]) -> None:
    ended = fewparse("models", "probe", "openai:toy", "--base-url", toy.url, env=apart)
    assert (ended.code, ended.err) == (0, "")
    title, heads, *table = ended.out.splitlines()
    assert title == f"openai:toy at {toy.url}"
    assert heads.split() == ["capability", "result", "consequence"]
    assert any(row.startswith("log-probabilities") and "legacy format" in row for row in table)
    assert any(row.startswith("context") and "not told" in row for row in table)


def test_probe_as_json_tells_all_by_name(toy: ToyServer, apart: dict[str, str]) -> None:
    ended = fewparse("models", "probe", "--base-url", toy.url, "--json", env=apart)
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (found["server"], found["model"], found["chat"]) == (toy.url, "toy", False)
    assert (found["logprobs"], found["lists"], found["echo"], found["tokens"]) == ("legacy", True, True, None)


def test_probe_is_for_models_behind_servers(apart: dict[str, str]) -> None:
    refused(fewparse("models", "probe", "embedded", env=apart), "not a model behind a server", "openai", code=2)
    refused(fewparse("models", "probe", "--base-url", nobody_listens(), env=apart), "the connection failed")
