"""Commands with a remote model: output and error messages for all kinds of servers."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import CommandResult, fewparse
from support.domain_files import to_json_lines, write_domain
from support.hostile_servers import ENDLESS, ESCAPES, SURROGATE, EndlessServer, FixedMutation, Mutation
from support.loopback import unused_address
from support.remote_models import request_bodies
from support.server_behaviours import Behaviour
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
TRAINING = ["a", "b", "ab", "bc", "abc"]
KEY = "sk-very-secret-9f3a"


def examples(programs: list[str]) -> list[dict[str, str]]:
    return [{"utterance": f"say {p}", "program": p} for p in programs]


@pytest.fixture
def letters(tmp_path: Path) -> str:
    """A domain of the letters that the toy model favours."""
    files = {
        "grammar.lark": 'start: ("a" | "b" | "c")+\n',
        "test.jsonl": to_json_lines(examples(["cab", "ca", "bca", "cc"])),
    }
    return str(write_domain(tmp_path / "letters", SETTINGS, examples(TRAINING), files))


@pytest.fixture
def toy() -> Iterator[ToyServer]:
    with ToyServer() as server:
        yield server


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment variables without the user's cache, keys and addresses."""
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FEWPARSE_API_KEY", "FEWPARSE_BASE_URL")
    return {**dict.fromkeys(names, ""), "FEWPARSE_CACHE": str(tmp_path / "cache")}


def remote(
    command: str, domain: str, url: str, env: Mapping[str, str], *more: str, model: str = "openai:toy"
) -> CommandResult:
    """Run a command with a remote model at this address."""
    utterance = ["say cab"] if command == "parse" else []
    return fewparse(command, domain, *utterance, "--model", model, "--base-url", url, *more, env=env)


def assert_error(ended: CommandResult, *messages: str, code: int = 1) -> None:
    """Check that the command failed with these messages, and showed no secret."""
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("error: ")
    for message in messages:
        assert message in ended.err
    assert KEY not in ended.err


@pytest.mark.parametrize("model", ["openai:toy", "openai:", "openai-chat:toy"])
def test_an_utterance_is_parsed_by_a_remote_model(
    model: str, letters: str, toy: ToyServer, environment: dict[str, str]
) -> None:
    ended = remote("parse", letters, toy.url, environment, "--json", model=model)
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert set(found["output"]) <= set("abc")
    assert found["model"] == f"{model.rstrip(':').partition(':')[0]}:toy@{toy.url}"
    assert found["usage"]["cost"] is None
    assert found["usage"]["requests"] > 0


def test_the_address_may_come_from_the_environment(
    letters: str, toy: ToyServer, environment: dict[str, str]
) -> None:
    ended = fewparse(
        "parse", letters, "say cab", "--model", "openai:toy", env={**environment, "OPENAI_BASE_URL": toy.url}
    )
    assert ended.code == 0, ended.err
    assert toy.requests


def test_a_second_parse_sends_requests_only_without_the_cache(
    letters: str, toy: ToyServer, environment: dict[str, str]
) -> None:
    first = json.loads(remote("parse", letters, toy.url, environment, "--json").out)
    sent = len(toy.requests)
    again = json.loads(remote("parse", letters, toy.url, environment, "--json").out)
    assert len(toy.requests) == sent
    assert again["candidates"] == first["candidates"]
    assert (again["usage"]["cached_requests"], again["usage"]["cost"]) == (again["usage"]["requests"], 0)
    fresh = json.loads(remote("parse", letters, toy.url, environment, "--json", "--no-cache").out)
    assert len(toy.requests) > sent
    assert fresh["usage"]["cached_requests"] == 0
    assert fresh["candidates"] == first["candidates"]


def test_explain_shows_requests_and_the_unknown_cost(
    letters: str, toy: ToyServer, environment: dict[str, str]
) -> None:
    ended = remote("parse", letters, toy.url, environment, "--explain")
    assert ended.code == 0, ended.err
    usage = next(line for line in ended.out.splitlines() if " requests in " in line)
    assert "0 from the cache, 0 retried" in usage
    assert usage.endswith("cost unknown")


@pytest.mark.parametrize("command", ["parse", "eval"])
def test_the_default_server_needs_a_key(command: str, letters: str, environment: dict[str, str]) -> None:
    utterance = ["say cab"] if command == "parse" else []
    ended = fewparse(command, letters, *utterance, "--model", "openai:gpt-4o", env=environment)
    assert_error(ended, "https://api.openai.com/v1 needs an API key", "OPENAI_API_KEY", "--base-url", code=2)


@pytest.mark.parametrize("command", ["parse", "eval"])
def test_a_wrong_key_is_reported_and_not_shown(command: str, letters: str, environment: dict[str, str]) -> None:
    with ToyServer(Behaviour(key="right")) as toy:
        ended = remote(command, letters, toy.url, {**environment, "OPENAI_API_KEY": KEY})
    assert_error(ended, "rejected the API key", "***", "OPENAI_API_KEY")


@pytest.mark.parametrize("command", ["parse", "eval"])
def test_a_refused_connection_is_reported(command: str, letters: str, environment: dict[str, str]) -> None:
    assert_error(remote(command, letters, unused_address(), environment), "the connection failed", "--base-url")


@pytest.mark.parametrize(
    ("url", "messages"),
    [
        ("localhost:8080/v1", "is not a server address"),
        ("http://[half/v1", "is malformed"),
        ("http://127.0.0.1:port/v1", "is not a server address"),
    ],
)
def test_an_invalid_address_is_a_usage_error(
    url: str, messages: str, letters: str, environment: dict[str, str]
) -> None:
    assert_error(remote("parse", letters, url, environment), messages, code=2)


def test_a_web_page_is_rejected(letters: str, environment: dict[str, str]) -> None:
    with ToyServer(Behaviour(html=True)) as toy:
        assert_error(remote("parse", letters, toy.url, environment), "web page", "/v1")


def test_an_unknown_model_is_reported_with_the_known_ones(
    letters: str, toy: ToyServer, environment: dict[str, str]
) -> None:
    assert_error(
        remote("parse", letters, toy.url, environment, model="openai:toi"), "unknown model", "'toi'", "toy", code=2
    )


def test_a_chat_only_model_is_reported_with_a_hint(letters: str, environment: dict[str, str]) -> None:
    with ToyServer(Behaviour(completions=False)) as toy:
        assert_error(remote("parse", letters, toy.url, environment), "status 404", "openai-chat:NAME")
        assert remote("parse", letters, toy.url, environment, model="openai-chat:toy").code == 0


def test_a_server_without_log_probabilities_is_used_and_the_loss_is_stated(
    letters: str, environment: dict[str, str]
) -> None:
    with ToyServer(Behaviour(logprob_format="none", grammar="gbnf")) as toy:
        parsed = remote("parse", letters, toy.url, environment, "--explain")
        assert parsed.code == 0
        assert "reports no log-probabilities: the decoder is `sampling` instead of `speculative`" in parsed.err
        assert "constrained sampling" in parsed.out
        assert "grammar" in request_bodies(toy)[-1]
        evaluated = remote("eval", letters, toy.url, environment, "--compare", "--split", "train", "--limit", "1")
        assert evaluated.code == 0, evaluated.err
        assert "sampling W=" in evaluated.out
        assert "greedy" not in evaluated.out
        assert remote("parse", letters, toy.url, environment, "--no-server-grammar").code == 0
        assert "grammar" not in request_bodies(toy)[-1]
        probed = fewparse("models", "probe", "--base-url", toy.url, env=environment)
    assert "The server reports no log-probabilities: whole outputs are sampled, constrained by" in probed.out


@pytest.mark.parametrize("reported", ["nothing", "meta"])
def test_a_context_overflow_states_both_lengths(reported: Any, letters: str, environment: dict[str, str]) -> None:
    with ToyServer(Behaviour(context_length=150, models_report=reported)) as toy:
        ended = fewparse(
            *("parse", letters, "say cab " * 200, "--model", "openai:toy", "--base-url", toy.url), env=environment
        )
    assert_error(ended, "the prompt needs ", "the model's context holds 150", "--examples")


def test_a_cost_limit_needs_a_known_price(letters: str, toy: ToyServer, environment: dict[str, str]) -> None:
    ended = remote("parse", letters, toy.url, environment, "--max-cost", "1")
    assert_error(ended, "price of this model is unknown", "--max-tokens-total", code=2)


def test_a_spent_budget_ends_an_evaluation_that_can_be_resumed(
    letters: str, toy: ToyServer, environment: dict[str, str], tmp_path: Path
) -> None:
    out = ("--out", str(tmp_path / "out"), "--max-concurrency", "1")
    ended = remote("eval", letters, toy.url, environment, *out, "--max-tokens-total", "1500")
    assert_error(ended, "of 1500 tokens are spent", "of 4 items are done", "larger budget")
    resumed = remote("eval", letters, toy.url, environment, *out, "--json")
    assert resumed.code == 0, resumed.err
    assert {row["items"] for row in json.loads(resumed.out)["rows"]} == {4}


def test_an_evaluation_reports_its_requests(letters: str, toy: ToyServer, environment: dict[str, str]) -> None:
    ended = remote("eval", letters, toy.url, environment, "--json")
    assert ended.code == 0, ended.err
    row = json.loads(ended.out)["rows"][-1]
    assert row["items"] == 4
    assert row["requests"] > 0


@pytest.mark.parametrize(
    "option",
    [
        *(
            ["--base-url", "http://127.0.0.1/v1"],
            ["--timeout", "5"],
            ["--deadline", "5"],
        ),
        *(["--max-tokens-total", "9"], ["--max-cost", "1"], ["--context-length", "99"]),
    ],
    ids=lambda option: option[0],
)
def test_options_for_servers_are_rejected_with_a_local_model(
    option: list[str], letters: str, environment: dict[str, str]
) -> None:
    ended = fewparse("parse", letters, "say cab", *option, env=environment)
    assert_error(ended, f"{option[0]} is for a model behind a server", "--model openai:NAME", code=2)


@pytest.mark.parametrize("option", ["--timeout", "--deadline"])
def test_timeout_and_deadline_must_be_positive(option: str, letters: str, environment: dict[str, str]) -> None:
    assert_error(
        remote("parse", letters, "http://127.0.0.1/v1", environment, option, "0"), "more than 0 seconds", code=2
    )


def test_a_damaged_cache_is_reported_and_the_run_continues(
    letters: str, toy: ToyServer, environment: dict[str, str]
) -> None:
    file = Path(environment["FEWPARSE_CACHE"]) / "responses.sqlite"
    file.parent.mkdir()
    file.write_bytes(b"no database at all")
    ended = remote("parse", letters, toy.url, environment)
    assert ended.code == 0
    assert ended.err.startswith(f"note: the response cache {file} is damaged")
    assert ended.out.startswith("say cab\n")
    assert remote("parse", letters, toy.url, environment).err == ""


def test_the_cache_contains_no_key(letters: str, environment: dict[str, str]) -> None:
    with ToyServer(Behaviour(key=KEY)) as toy:
        assert remote("parse", letters, toy.url, {**environment, "OPENAI_API_KEY": KEY}).code == 0
    stored = [file.read_bytes() for file in Path(environment["FEWPARSE_CACHE"]).rglob("*") if file.is_file()]
    assert stored
    assert not any(KEY.encode() in content for content in stored)


def test_probe_shows_a_table_of_capabilities(toy: ToyServer, environment: dict[str, str]) -> None:
    ended = fewparse("models", "probe", "openai:toy", "--base-url", toy.url, env=environment)
    assert (ended.code, ended.err) == (0, "")
    title, heads, *table = ended.out.splitlines()
    assert title == f"openai:toy at {toy.url}"
    assert heads.split() == ["capability", "result", "consequence"]
    assert any(row.startswith("log-probabilities") and "legacy format" in row for row in table)
    assert any(row.startswith("context") and "not reported" in row for row in table)


def test_probe_as_json_has_all_capabilities(toy: ToyServer, environment: dict[str, str]) -> None:
    ended = fewparse("models", "probe", "--base-url", toy.url, "--json", env=environment)
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (found["server"], found["model"], found["chat"]) == (toy.url, "toy", False)
    assert (found["logprobs_format"], found["prompt_lists"], found["echo"], found["tokens"]) == (
        "legacy",
        True,
        True,
        None,
    )


def test_probe_requires_a_remote_model(environment: dict[str, str]) -> None:
    assert_error(
        fewparse("models", "probe", "embedded", env=environment),
        "is not a model behind a server",
        "openai",
        code=2,
    )
    assert_error(
        fewparse("models", "probe", "--base-url", unused_address(), env=environment), "the connection failed"
    )


@pytest.mark.parametrize("value", [ESCAPES, SURROGATE, [ESCAPES], 10**400])
def test_probe_shows_what_a_server_reports_safely(value: Any, environment: dict[str, str]) -> None:
    with FixedMutation(Behaviour(props=True), "/props", Mutation(("total_slots",), value)) as server:
        table = fewparse("models", "probe", "--base-url", server.url, env=environment)
        as_json = fewparse("models", "probe", "--base-url", server.url, "--json", env=environment)
    assert (table.code, as_json.code) == (0, 0)
    assert "total_slots is" in table.out
    assert "total_slots is" in json.loads(as_json.out)["ignored"][0]
    assert not {"\x1b", "\x07"} & set(table.out + as_json.out)


@pytest.mark.parametrize("name", ["header lines", "early hints", "a chunk extension", "empty deflate blocks"])
def test_a_command_ends_soon_after_the_deadline(letters: str, environment: dict[str, str], name: str) -> None:
    start = time.monotonic()
    with EndlessServer(*ENDLESS[name], 0.02) as server:
        ended = remote("parse", letters, server.url, environment, "--timeout", "0.3", "--deadline", "0.6")
    assert_error(ended, "no response within")
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("text", [SURROGATE, ESCAPES])
@pytest.mark.parametrize("options", [["--json"], []])
def test_text_of_a_server_that_cannot_be_shown_is_no_problem(
    letters: str, environment: dict[str, str], text: str, options: list[str]
) -> None:
    with FixedMutation(Behaviour(), "/v1/completions", Mutation(("choices", 0, "text"), text)) as server:
        for command in ("parse", "eval"):
            ended = remote(command, letters, server.url, environment, *options)
            assert ended.code in (0, 1)
            assert not {"\x1b", "\x07"} & set(ended.out + ended.err)


@pytest.mark.parametrize("name", ["timeout", "deadline"])
@pytest.mark.parametrize("value", ["nan", "0", "-1"])
def test_limits_of_time_must_be_positive(
    letters: str, toy: ToyServer, environment: dict[str, str], name: str, value: str
) -> None:
    assert_error(remote("parse", letters, toy.url, environment, f"--{name}={value}"), "more than 0", code=2)
