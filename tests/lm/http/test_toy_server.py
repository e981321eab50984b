"""The toy server returns samples of the toy model, and each of its behaviours has an effect."""

import http.client
import json
import math
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.lm.model import Sampling
from fewparse.lm.usage import Usage
from support.prompts import plain_prompt
from support.server_behaviours import COMPLIANT, LLAMA_CPP, LLAMA_CPP_PYTHON, Behaviour
from support.toy_model import END, TOKENS, ToyModel
from support.toy_server import ToyServer, rendered

CONTENT = Behaviour(logprob_format="content")
USER_ONLY = [{"role": "user", "content": "hello"}]
WITH_PREFIX = [*USER_ONLY, {"role": "assistant", "content": "ab"}]


@pytest.fixture(scope="module")
def compliant() -> Iterator[ToyServer]:
    with ToyServer() as server:
        yield server


def send(server: ToyServer, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
    """Send one request over a new connection; return the status and the body."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    try:
        method, text = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, path, text, {"Authorization": f"Bearer {key}"})
        received = connection.getresponse()
        content = received.read()
        is_json = received.headers["Content-Type"] == "application/json"
        return received.status, json.loads(content) if is_json else content
    finally:
        connection.close()


def complete(server: ToyServer, **body: Any) -> Any:
    """Complete a prompt, or a chat if there are messages."""
    chat = "messages" in body
    path = "/v1/chat/completions" if chat else "/v1/completions"
    status, response = send(server, path, {**({} if chat else {"prompt": "pear"}), "seed": 3, **body})
    assert status == 200, response
    return response


def choices(behaviour: Behaviour, **body: Any) -> Any:
    with ToyServer(behaviour) as server:
        return complete(server, **body)["choices"]


def texts(behaviour: Behaviour, **body: Any) -> list[str]:
    return [choice["text"] for choice in choices(behaviour, **body)]


def request_ending_with(server: ToyServer, last: str) -> dict[str, Any]:
    """A request whose sample has this token among its first 30 tokens, but not among the first two."""
    for seed in range(300):
        body = {"seed": seed, "max_tokens": 30, "logprobs": 0}
        tokens = complete(server, **body)["choices"][0]["logprobs"]["tokens"]
        first = next((i for i, token in enumerate(tokens) if last in token), 0)
        if first >= 2 and tokens[first] == last:
            return body
    raise AssertionError(f"no sample contains {last!r}")


@settings(max_examples=25)
@given(st.text(max_size=6), st.integers(1, 3), st.sampled_from([0.0, 0.7, 1.5]), st.integers(0, 2**40))
def test_samples_equal_those_of_the_toy_model(
    compliant: ToyServer, prompt: str, n: int, temperature: float, seed: int
) -> None:
    body = {"n": n, "temperature": temperature, "seed": seed, "max_tokens": 8, "stop": "\n", "logprobs": 2}
    response = complete(compliant, prompt=prompt, **body)["choices"]
    sampling = Sampling(n, temperature, 8, b"\n", seed)
    expected = ToyModel().sample(plain_prompt(prompt), [()], sampling, Usage())[0]
    assert [choice["index"] for choice in response] == list(range(n))
    for choice, completion in zip(response, expected, strict=True):
        size = len(completion.tokens)
        text = b"".join(token.bytes for token in completion.tokens)
        assert choice["text"] == text.decode(errors="replace")
        assert choice["logprobs"]["token_logprobs"][:size] == list(completion.logprobs)
        assert choice["finish_reason"] == ("stop" if completion.ended else "length")
        assert len(choice["logprobs"]["tokens"]) == size + completion.ended


def test_prompts_may_be_text_ids_or_lists(compliant: ToyServer) -> None:
    ids, other = list(b"pear"), list(b"plum")
    alone = complete(compliant, prompt="pear")["choices"]
    assert complete(compliant, prompt=ids)["choices"] == alone
    several = complete(compliant, prompt=["pear", "plum"], n=2)["choices"]
    assert complete(compliant, prompt=[ids, other], n=2)["choices"] == several
    assert [choice["index"] for choice in several] == [0, 1, 2, 3]
    assert several[0] == alone[0]


def test_log_probabilities_include_the_best_tokens_and_the_sampled_one(compliant: ToyServer) -> None:
    row = ToyModel().logprobs(b"pear")
    response = complete(compliant, max_tokens=1, logprobs=3)["choices"][0]["logprobs"]
    top = response["top_logprobs"][0]
    assert sorted(top.values(), reverse=True)[:3] == sorted(row, reverse=True)[:3]
    assert top[response["tokens"][0]] == response["token_logprobs"][0]
    assert response["text_offset"] == [4]
    choice = complete(compliant, max_tokens=1, logprobs=len(TOKENS))["choices"][0]
    everything = choice["logprobs"]["top_logprobs"][0]
    assert len(everything) == len(TOKENS)
    assert math.fsum(map(math.exp, everything.values())) == pytest.approx(1)
    assert everything["<|end|>"] == row[END]


def test_an_echo_scores_the_prompt_and_escapes_invalid_utf8(compliant: ToyServer) -> None:
    response = complete(compliant, prompt="aé", echo=True, max_tokens=0, logprobs=1)["choices"][0]
    model = ToyModel()
    assert response["text"] == "aé"
    assert response["logprobs"]["tokens"] == ["a", "bytes:\\xc3", "bytes:\\xa9"]
    scores = [None, model.logprobs([97])[0xC3], model.logprobs([97, 0xC3])[0xA9]]
    assert response["logprobs"]["token_logprobs"] == scores
    assert response["logprobs"]["text_offset"] == [0, 1, 1]


def test_an_echo_may_be_ignored_or_off_by_one() -> None:
    body = {"prompt": "ab", "echo": True, "max_tokens": 1, "logprobs": 0}
    ignored = choices(Behaviour(echo="ignored"), **body)[0]
    assert ignored == choices(COMPLIANT, **{**body, "echo": False})[0]
    wrong = choices(LLAMA_CPP_PYTHON, **body)[0]["logprobs"]["token_logprobs"]
    assert wrong[:2] == [None, ToyModel().logprobs(b"ab")[ord("b")]]


def test_the_content_format_has_ids_and_bytes() -> None:
    entry = choices(CONTENT, prompt="aé", echo=True, max_tokens=0, logprobs=2)[0]["logprobs"]["content"][1]
    row = ToyModel().logprobs(b"a")
    assert (entry["id"], entry["bytes"], entry["logprob"]) == (0xC3, [0xC3], row[0xC3])
    best = sorted(range(len(row)), key=lambda i: -row[i])[:2]
    assert [other["id"] for other in entry["top_logprobs"]] == best
    assert [bytes(other["bytes"]) for other in entry["top_logprobs"]] == [TOKENS[i] or b"<|end|>" for i in best]
    without_ids = choices(Behaviour(logprob_format="content", reports_token_ids=False), logprobs=1)[0]
    assert all("id" not in entry for entry in without_ids["logprobs"]["content"])


def test_a_chat_is_rendered_as_a_prompt_and_continues_the_assistant() -> None:
    body = {"max_completion_tokens": 5, "logprobs": True, "top_logprobs": 3}
    response = choices(COMPLIANT, messages=WITH_PREFIX, **body)[0]
    assert response["message"]["content"] == texts(COMPLIANT, prompt=rendered(WITH_PREFIX), max_tokens=5)[0]
    assert len(response["logprobs"]["content"][0]["top_logprobs"]) == 3
    prefix = "user: hello\nassistant: ab"
    continuation = texts(COMPLIANT, prompt=prefix, max_tokens=5)[0]
    always = choices(Behaviour(supports_prefix="always"), messages=WITH_PREFIX, **body)[0]
    assert always["message"]["content"] == continuation
    flagged = Behaviour(supports_prefix="continue_final_message")
    on = choices(flagged, messages=WITH_PREFIX, continue_final_message=True, **body)[0]
    assert on["message"]["content"] == continuation
    assert choices(flagged, messages=WITH_PREFIX, **body) == [response]
    repeated = choices(Behaviour(supports_prefix="always", repeats_prefix=True), messages=WITH_PREFIX, **body)[0]
    assert repeated["message"]["content"] == f"ab{continuation}"
    assert repeated["logprobs"] == on["logprobs"]
    marked = [*USER_ONLY, {**WITH_PREFIX[-1], "prefix": True}]
    by_mark = choices(Behaviour(supports_prefix="prefix"), messages=marked, **body)[0]
    assert by_mark["message"]["content"] == continuation


def test_a_stop_is_never_in_the_text_and_may_be_hidden_or_ignored(compliant: ToyServer) -> None:
    body = {**request_ending_with(compliant, "c"), "stop": ["never", "c"]}
    free = texts(COMPLIANT, **{**body, "stop": None})[0]
    stopped = choices(COMPLIANT, **body)[0]
    assert (stopped["text"], stopped["finish_reason"]) == (free[: free.index("c")], "stop")
    assert stopped["logprobs"]["tokens"][-1] == "c"
    hidden = choices(Behaviour(stop="hidden"), **body)[0]
    assert hidden["text"] == stopped["text"]
    assert hidden["logprobs"]["tokens"] == stopped["logprobs"]["tokens"][:-1]
    assert texts(Behaviour(stop="ignored"), **body) == [free]


def test_the_end_is_not_text_and_may_have_no_entry_or_no_text(compliant: ToyServer) -> None:
    body = request_ending_with(compliant, "<|end|>")
    shown = choices(COMPLIANT, **body)[0]
    assert shown["finish_reason"] == "stop"
    assert "<|end|>" not in shown["text"]
    tokens = shown["logprobs"]["tokens"]
    assert choices(Behaviour(end_shown=False), **body)[0]["logprobs"]["tokens"] == tokens[:-1]
    entry = choices(Behaviour(logprob_format="content", end_text=""), **body)[0]["logprobs"]["content"][-1]
    assert (entry["id"], entry["token"], entry["bytes"]) == (END, "", [])


def test_log_probabilities_may_be_tempered() -> None:
    body = {"max_tokens": 1, "temperature": 2, "logprobs": 0}
    compliant, wrong = (
        choices(behaviour, **body)[0]["logprobs"] for behaviour in (COMPLIANT, Behaviour(tempered_logprobs=True))
    )
    row = ToyModel().logprobs(b"pear")
    sampled = TOKENS.index(compliant["tokens"][0].encode())
    assert compliant["token_logprobs"] == [row[sampled]]
    total = math.log(math.fsum(math.exp(x / 2) for x in row))
    assert wrong["tokens"] == compliant["tokens"]
    assert wrong["token_logprobs"] == [pytest.approx(row[sampled] / 2 - total)]


def test_merged_entries_have_the_bytes_of_two_tokens_and_the_score_of_the_second() -> None:
    body = {"max_tokens": 6, "logprobs": 1, "seed": 5, "grammar": 'root ::= "abéc"'}
    plain, often, split = (
        choices(Behaviour(logprob_format="content", grammar="gbnf", merged_tokens=merged), **body)[0]
        for merged in ("never", "often", "split_characters")
    )
    entries = plain["logprobs"]["content"]
    assert [entry["bytes"] for entry in entries] == [[97], [98], [0xC3], [0xA9], [99], [*b"<|end|>"]]
    merged = often["logprobs"]["content"]
    assert [entry["bytes"] for entry in merged] == [[97, 98], [0xC3, 0xA9], [99], [*b"<|end|>"]]
    for entry, second in zip(merged[:2], (entries[1], entries[3]), strict=True):
        assert (entry["id"], entry["logprob"]) == (second["id"], second["logprob"])
    assert [entry["token"] for entry in split["logprobs"]["content"]] == ["a", "b", "é", "c", "<|end|>"]
    assert plain["text"] == often["text"] == split["text"] == "abéc"


@pytest.mark.parametrize(
    ("behaviour", "indices"),
    [
        (COMPLIANT, [0, 1, 2, 3]),
        (Behaviour(n="ignored"), [0, 1]),
        (Behaviour(first_prompt_only=True), [0, 1]),
        (Behaviour(n="ignored", first_prompt_only=True), [0]),
        (Behaviour(extra_choices=1), [0, 1, 2, 3, 4]),
        (Behaviour(extra_choices=-3), [0]),
        (Behaviour(reorders_choices=True), [3, 2, 1, 0]),
    ],
)
def test_the_number_and_order_of_choices_may_deviate(behaviour: Behaviour, indices: list[int]) -> None:
    response = choices(behaviour, prompt=["pear", "plum"], n=2, max_tokens=5)
    assert [choice["index"] for choice in response] == indices
    compliant = choices(COMPLIANT, prompt=["pear", "plum"], n=2, max_tokens=5)
    if behaviour.reorders_choices:
        assert sorted(response, key=lambda choice: choice["index"]) == compliant


def test_seeds_may_be_ignored_and_samples_identical() -> None:
    body = {"n": 8, "max_tokens": 12}
    assert len(set(texts(COMPLIANT, **body))) > 1
    assert len(set(texts(Behaviour(same_samples=True), **body))) == 1
    for behaviour, same in ((COMPLIANT, True), (Behaviour(seed="ignored"), False)):
        with ToyServer(behaviour) as server:
            twice = [complete(server, **body)["choices"] for _ in range(2)]
        assert (twice[0] == twice[1]) is same


def test_log_probabilities_may_be_missing_or_capped() -> None:
    assert choices(COMPLIANT)[0]["logprobs"] is None
    assert choices(Behaviour(logprob_format="none"), logprobs=5)[0]["logprobs"] is None
    assert choices(Behaviour(logprob_format="none"), messages=USER_ONLY, logprobs=True)[0]["logprobs"] is None
    capped = Behaviour(logprob_format="content", capped_logprobs=2)
    response = choices(capped, logprobs=50)[0]["logprobs"]["content"]
    assert all(len(entry["top_logprobs"]) == 2 for entry in response)


def test_max_tokens_zero_may_give_one_token() -> None:
    assert texts(COMPLIANT, max_tokens=0) == [""]
    one = Behaviour(max_tokens_zero="one_token")
    assert choices(one, max_tokens=0) == choices(COMPLIANT, max_tokens=1)


@pytest.mark.parametrize(
    ("behaviour", "body", "status", "message"),
    [
        (COMPLIANT, {"model": "gpt-9"}, 404, "The model `gpt-9` does not exist"),
        (COMPLIANT, {"n": 0}, 400, "'n'"),
        (COMPLIANT, {"prompt": [1, 260]}, 400, "invalid tokens"),
        (COMPLIANT, {"grammar": 'root ::= "a"'}, 400, "Unrecognized request argument supplied: grammar"),
        (Behaviour(rejected_fields=frozenset({"min_p"})), {"min_p": 0}, 400, "supplied: min_p"),
        (Behaviour(completions=False), {}, 404, "Invalid URL"),
        (Behaviour(accepts_token_ids=False), {"prompt": [97]}, 400, "valid string"),
        (Behaviour(accepts_prompt_lists=False), {"prompt": ["a", "b"]}, 400, "list"),
        (Behaviour(n="rejected"), {"n": 2}, 400, "Only one"),
        (Behaviour(max_n=2), {"n": 3}, 400, "1 <= value <= 2"),
        (Behaviour(max_logprobs=5), {"logprobs": 6}, 400, "<= 5"),
        (Behaviour(max_tokens_zero="rejected"), {"max_tokens": 0}, 400, "at least 1"),
        (Behaviour(context_length=9), {"prompt": "pear", "max_tokens": 6}, 400, "maximum context length is 9"),
        (Behaviour(context_length=3, context_error="llama.cpp"), {"prompt": "pear"}, 400, "request (4 tokens)"),
        (Behaviour(grammar="gbnf"), {"grammar": 'root ::= "a" | b'}, 400, "Invalid grammar"),
        (Behaviour(grammar="structured_outputs"), {"grammar": 'root ::= "a"'}, 400, "Unrecognized"),
    ],
)
def test_unsupported_requests_are_rejected_with_a_message(
    behaviour: Behaviour, body: dict[str, Any], status: int, message: str
) -> None:
    with ToyServer(behaviour) as server:
        got, response = send(server, "/v1/completions", body)
    assert got == status
    assert message in response["error"]["message"]


def test_a_completion_ends_at_the_context_length_of_llama_cpp() -> None:
    narrow = Behaviour(context_length=7, context_error="llama.cpp", logprob_format="content", grammar="gbnf")
    response = choices(narrow, max_tokens=50, grammar='root ::= "abcdef"')[0]
    assert (response["text"], response["finish_reason"]) == ("abc", "length")


def test_a_wrong_key_is_rejected_and_repeated() -> None:
    with ToyServer(Behaviour(key="right")) as server:
        for path, body in (("/v1/models", None), ("/v1/completions", {"prompt": "a"})):
            status, response = send(server, path, body, key="wrong")
            assert (status, response["error"]["code"]) == (401, "invalid_api_key")
            assert "wrong" in response["error"]["message"]
            assert send(server, path, body, key="right")[0] == 200


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("gbnf", {"grammar": 'root ::= "a\\nb\\"é"'}),
        ("structured_outputs", {"structured_outputs": {"grammar": 'root ::= "a\\nb\\"é"'}}),
        ("guided_grammar", {"guided_grammar": 'root ::= "a\\nb\\"é"'}),
    ],
)
def test_a_grammar_of_one_literal_is_generated_byte_by_byte(kind: Any, body: dict[str, Any]) -> None:
    response = choices(Behaviour(grammar=kind), logprobs=0, **body)[0]
    assert (response["text"], response["finish_reason"]) == ('a\nb"é', "stop")
    assert response["logprobs"]["tokens"] == ["a", "\n", "b", '"', "bytes:\\xc3", "bytes:\\xa9", "<|end|>"]
    model = ToyModel()
    assert response["logprobs"]["token_logprobs"][:2] == [
        model.logprobs(b"pear")[97],
        model.logprobs(b"peara")[10],
    ]
    assert texts(Behaviour(other_grammars="ignored"), **body) == texts(COMPLIANT)


def test_endpoints_of_llama_cpp_and_vllm() -> None:
    with ToyServer(LLAMA_CPP) as server:
        whole = {"content": "aé<|end|>", "add_special": True, "parse_special": True}
        assert send(server, "/tokenize", whole)[1] == {"tokens": [97, 0xC3, 0xA9, END]}
        response = send(server, "/tokenize", {**whole, "with_pieces": True})[1]["tokens"]
        assert [token["piece"] for token in response] == ["a", [0xC3], [0xA9], "<|end|>"]
        assert [token["id"] for token in response] == [97, 0xC3, 0xA9, END]
        assert send(server, "/tokenize", {**whole, "parse_special": False})[1]["tokens"][3:] == list(b"<|end|>")
        props = send(server, "/props")[1]
        assert (props["total_slots"], props["eos_token"]) == (4, "<|end|>")
        assert props["default_generation_settings"]["n_ctx"] == LLAMA_CPP.context_length
        listed = send(server, "/v1/models")[1]["data"][0]
        assert (listed["id"], listed["meta"]["n_vocab"]) == ("toy", len(TOKENS))
        assert send(server, "/v1/completions", {"prompt": "a", "model": "whatever"})[0] == 200
    with ToyServer(Behaviour(tokenize="vllm", models_report="max_model_len")) as server:
        assert send(server, "/tokenize", {"model": "toy", "prompt": "ab"})[1]["tokens"] == [97, 98]
        assert send(server, "/v1/models")[1]["data"][0]["max_model_len"] == 4096
        assert send(server, "/props")[0] == 404


def test_usage_counts_prompt_completion_and_cached_tokens() -> None:
    with ToyServer() as server:
        body = {"prompt": ["pear", "peach"], "n": 2, "max_tokens": 3, "logprobs": 0}
        response = complete(server, **body)
        written = sum(len(choice["logprobs"]["tokens"]) for choice in response["choices"])
        usage = response["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (9, written)
        assert (usage["total_tokens"], usage["prompt_tokens_details"]) == (9 + written, {"cached_tokens": 3})
        again = complete(server, prompt="peach")["usage"]
        assert again["prompt_tokens_details"]["cached_tokens"] == 5
    with ToyServer(Behaviour(usage_of_first_choice=True)) as server:
        assert complete(server, **body)["usage"]["prompt_tokens"] == 4
    with ToyServer(Behaviour(reports_usage=False)) as server:
        assert "usage" not in complete(server)


def test_every_request_may_return_a_web_page() -> None:
    with ToyServer(Behaviour(html=True)) as server:
        status, page = send(server, "/v1/completions", {"prompt": "a"})
    assert status == 200
    assert page.startswith(b"<!doctype html>")


def test_requests_and_connections_are_recorded() -> None:
    with ToyServer() as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        for prompt in ("a", "b"):
            connection.request("POST", "/v1/completions", json.dumps({"prompt": prompt}), {"X-Mark": prompt})
            connection.getresponse().read()
        connection.request("POST", "/v1/completions", "no JSON")
        assert connection.getresponse().status == 400
        connection.close()
        assert [(r.method, r.path, r.headers.get("X-Mark"), r.body) for r in server.requests] == [
            ("POST", "/v1/completions", "a", {"prompt": "a"}),
            ("POST", "/v1/completions", "b", {"prompt": "b"}),
            ("POST", "/v1/completions", None, None),
        ]
        assert server.connections == 1


def test_it_ends_with_connections_open_and_leaves_no_thread() -> None:
    threads = set(threading.enumerate())
    with ToyServer() as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        connection.request("GET", "/v1/models")
        connection.getresponse().read()
        start = time.monotonic()
    assert time.monotonic() - start < 60
    assert set(threading.enumerate()) <= threads
    connection.close()
