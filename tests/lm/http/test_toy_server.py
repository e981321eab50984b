"""The toy server says what the toy model thinks, and each of its manners shows."""

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
from fewparse.prompt import Part, Prompt
from support.server_behaviours import HONEST, LLAMA_CPP, LLAMA_CPP_PYTHON, Manners
from support.toy_model import END, TOKENS, ToyModel
from support.toy_server import ToyServer, rendered

CONTENT = Manners(logprob_format="content")
HELLO = [{"role": "user", "content": "hello"}]
BEGUN = [*HELLO, {"role": "assistant", "content": "ab"}]


@pytest.fixture(scope="module")
def honest() -> Iterator[ToyServer]:
    with ToyServer() as server:
        yield server


def ask(server: ToyServer, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
    """The status and the answer to one request, over a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=10)
    try:
        method, words = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, path, words, {"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        read = response.read()
        is_json = response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(read) if is_json else read
    finally:
        connection.close()


def answer(server: ToyServer, **body: Any) -> Any:
    """What is told to a prompt, or to a chat where there are messages."""
    chat = "messages" in body
    path = "/v1/chat/completions" if chat else "/v1/completions"
    status, told = ask(server, path, {**({} if chat else {"prompt": "pear"}), "seed": 3, **body})
    assert status == 200, told
    return told


def choices(manners: Manners, **body: Any) -> Any:
    with ToyServer(manners) as server:
        return answer(server, **body)["choices"]


def texts(manners: Manners, **body: Any) -> list[str]:
    return [choice["text"] for choice in choices(manners, **body)]


def ending(server: ToyServer, last: str) -> dict[str, Any]:
    """A request whose sample comes to this token before it is 30 tokens long, but not at once."""
    for seed in range(300):
        body = {"seed": seed, "max_tokens": 30, "logprobs": 0}
        tokens = answer(server, **body)["choices"][0]["logprobs"]["tokens"]
        first = next((i for i, token in enumerate(tokens) if last in token), 0)
        if first >= 2 and tokens[first] == last:
            return body
    raise AssertionError(f"no sample comes to {last!r}")


@settings(max_examples=25)
@given(st.text(max_size=6), st.integers(1, 3), st.sampled_from([0.0, 0.7, 1.5]), st.integers(0, 2**40))
def test_samples_are_the_toy_models_own(
    honest: ToyServer, prompt: str, n: int, temperature: float, seed: int
) -> None:
    body = {"n": n, "temperature": temperature, "seed": seed, "max_tokens": 8, "stop": "\n", "logprobs": 2}
    told = answer(honest, prompt=prompt, **body)["choices"]
    sampling = Sampling(n, temperature, 8, b"\n", seed)
    own = ToyModel().sample(Prompt((Part(prompt, False),)), [()], sampling, Usage())[0]
    assert [choice["index"] for choice in told] == list(range(n))
    for choice, completion in zip(told, own, strict=True):
        size = len(completion.tokens)
        spoken = b"".join(token.bytes for token in completion.tokens)
        assert choice["text"] == spoken.decode(errors="replace")
        assert choice["logprobs"]["token_logprobs"][:size] == list(completion.logprobs)
        assert choice["finish_reason"] == ("stop" if completion.ended else "length")
        assert len(choice["logprobs"]["tokens"]) == size + completion.ended


def test_a_prompt_may_be_a_text_or_ids_and_there_may_be_several(honest: ToyServer) -> None:
    ids, other = list(b"pear"), list(b"plum")
    alone = answer(honest, prompt="pear")["choices"]
    assert answer(honest, prompt=ids)["choices"] == alone
    several = answer(honest, prompt=["pear", "plum"], n=2)["choices"]
    assert answer(honest, prompt=[ids, other], n=2)["choices"] == several
    assert [choice["index"] for choice in several] == [0, 1, 2, 3]
    assert several[0] == alone[0]


def test_log_probabilities_are_of_the_best_tokens_and_of_the_sampled_one(honest: ToyServer) -> None:
    row = ToyModel().logprobs(b"pear")
    told = answer(honest, max_tokens=1, logprobs=3)["choices"][0]["logprobs"]
    top = told["top_logprobs"][0]
    assert sorted(top.values(), reverse=True)[:3] == sorted(row, reverse=True)[:3]
    assert top[told["tokens"][0]] == told["token_logprobs"][0]
    assert told["text_offset"] == [4]
    everything = answer(honest, max_tokens=1, logprobs=len(TOKENS))["choices"][0]["logprobs"]["top_logprobs"][0]
    assert len(everything) == len(TOKENS)
    assert math.fsum(map(math.exp, everything.values())) == pytest.approx(1)
    assert everything["<|end|>"] == row[END]


def test_an_echo_scores_the_prompt_and_spells_what_is_no_text(honest: ToyServer) -> None:
    told = answer(honest, prompt="aé", echo=True, max_tokens=0, logprobs=1)["choices"][0]
    model = ToyModel()
    assert told["text"] == "aé"
    assert told["logprobs"]["tokens"] == ["a", "bytes:\\xc3", "bytes:\\xa9"]
    scores = [None, model.logprobs([97])[0xC3], model.logprobs([97, 0xC3])[0xA9]]
    assert told["logprobs"]["token_logprobs"] == scores
    assert told["logprobs"]["text_offset"] == [0, 1, 1]


def test_an_echo_may_be_ignored_or_off_by_one() -> None:
    asked = {"prompt": "ab", "echo": True, "max_tokens": 1, "logprobs": 0}
    ignored = choices(Manners(echo="ignored"), **asked)[0]
    assert ignored == choices(HONEST, **{**asked, "echo": False})[0]
    wrong = choices(LLAMA_CPP_PYTHON, **asked)[0]["logprobs"]["token_logprobs"]
    assert wrong[:2] == [None, ToyModel().logprobs(b"ab")[ord("b")]]


def test_the_other_form_tells_ids_and_bytes() -> None:
    entry = choices(CONTENT, prompt="aé", echo=True, max_tokens=0, logprobs=2)[0]["logprobs"]["content"][1]
    row = ToyModel().logprobs(b"a")
    assert (entry["id"], entry["bytes"], entry["logprob"]) == (0xC3, [0xC3], row[0xC3])
    best = sorted(range(len(row)), key=lambda i: -row[i])[:2]
    assert [other["id"] for other in entry["top_logprobs"]] == best
    assert [bytes(other["bytes"]) for other in entry["top_logprobs"]] == [TOKENS[i] or b"<|end|>" for i in best]
    nameless = choices(Manners(logprob_format="content", ids_told=False), logprobs=1)[0]["logprobs"]["content"]
    assert all("id" not in entry for entry in nameless)


def test_a_chat_is_a_prompt_and_goes_on_with_what_the_assistant_began() -> None:
    asked = {"max_completion_tokens": 5, "logprobs": True, "top_logprobs": 3}
    told = choices(HONEST, messages=BEGUN, **asked)[0]
    assert told["message"]["content"] == texts(HONEST, prompt=rendered(BEGUN), max_tokens=5)[0]
    assert len(told["logprobs"]["content"][0]["top_logprobs"]) == 3
    begun = "user: hello\nassistant: ab"
    went_on = texts(HONEST, prompt=begun, max_tokens=5)[0]
    assert choices(Manners(supports_prefix="always"), messages=BEGUN, **asked)[0]["message"]["content"] == went_on
    flagged = Manners(supports_prefix="continue_final_message")
    on = choices(flagged, messages=BEGUN, continue_final_message=True, **asked)[0]
    assert on["message"]["content"] == went_on
    assert choices(flagged, messages=BEGUN, **asked) == [told]
    repeated = choices(Manners(supports_prefix="always", begun_repeated=True), messages=BEGUN, **asked)[0]
    assert repeated["message"]["content"] == f"ab{went_on}"
    assert repeated["logprobs"] == on["logprobs"]
    marked = [*HELLO, {**BEGUN[-1], "prefix": True}]
    assert choices(Manners(supports_prefix="prefix"), messages=marked, **asked)[0]["message"]["content"] == went_on


def test_a_stop_is_never_in_the_text_and_may_be_hidden_or_ignored(honest: ToyServer) -> None:
    asked = {**ending(honest, "c"), "stop": ["never", "c"]}
    free = texts(HONEST, **{**asked, "stop": None})[0]
    stopped = choices(HONEST, **asked)[0]
    assert (stopped["text"], stopped["finish_reason"]) == (free[: free.index("c")], "stop")
    assert stopped["logprobs"]["tokens"][-1] == "c"
    hidden = choices(Manners(stop="hidden"), **asked)[0]
    assert hidden["text"] == stopped["text"]
    assert hidden["logprobs"]["tokens"] == stopped["logprobs"]["tokens"][:-1]
    assert texts(Manners(stop="ignored"), **asked) == [free]


def test_the_end_is_not_text_and_may_have_no_entry_or_no_name(honest: ToyServer) -> None:
    asked = ending(honest, "<|end|>")
    shown = choices(HONEST, **asked)[0]
    assert shown["finish_reason"] == "stop"
    assert "<|end|>" not in shown["text"]
    tokens = shown["logprobs"]["tokens"]
    assert choices(Manners(end_shown=False), **asked)[0]["logprobs"]["tokens"] == tokens[:-1]
    nameless = choices(Manners(logprob_format="content", end_text=""), **asked)[0]["logprobs"]["content"][-1]
    assert (nameless["id"], nameless["token"], nameless["bytes"]) == (END, "", [])


def test_only_a_liar_tempers_log_probabilities() -> None:
    asked = {"max_tokens": 1, "temperature": 2, "logprobs": 0}
    honest, wrong = (
        choices(manners, **asked)[0]["logprobs"] for manners in (HONEST, Manners(tempered_logprobs=True))
    )
    row = ToyModel().logprobs(b"pear")
    sampled = TOKENS.index(honest["tokens"][0].encode())
    assert honest["token_logprobs"] == [row[sampled]]
    total = math.log(math.fsum(math.exp(x / 2) for x in row))
    assert wrong["tokens"] == honest["tokens"]
    assert wrong["token_logprobs"] == [pytest.approx(row[sampled] / 2 - total)]


def test_merged_entries_have_the_bytes_of_two_tokens_and_the_score_of_the_second() -> None:
    asked = {"max_tokens": 6, "logprobs": 1, "seed": 5, "grammar": 'root ::= "abéc"'}
    plain, often, split = (
        choices(Manners(logprob_format="content", grammar="gbnf", merged_tokens=merged), **asked)[0]
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
    ("manners", "indices"),
    [
        (HONEST, [0, 1, 2, 3]),
        (Manners(n="ignored"), [0, 1]),
        (Manners(lists_answered_once=True), [0, 1]),
        (Manners(n="ignored", lists_answered_once=True), [0]),
        (Manners(wrong_choices=1), [0, 1, 2, 3, 4]),
        (Manners(wrong_choices=-3), [0]),
        (Manners(reordered=True), [3, 2, 1, 0]),
    ],
)
def test_a_liar_gives_other_choices_than_asked_for(manners: Manners, indices: list[int]) -> None:
    told = choices(manners, prompt=["pear", "plum"], n=2, max_tokens=5)
    assert [choice["index"] for choice in told] == indices
    honest = choices(HONEST, prompt=["pear", "plum"], n=2, max_tokens=5)
    if manners.reordered:
        assert sorted(told, key=lambda choice: choice["index"]) == honest


def test_seeds_and_samples_may_be_ignored_or_all_the_same() -> None:
    asked = {"n": 8, "max_tokens": 12}
    assert len(set(texts(HONEST, **asked))) > 1
    assert len(set(texts(Manners(same_samples=True), **asked))) == 1
    for manners, same in ((HONEST, True), (Manners(seed="ignored"), False)):
        with ToyServer(manners) as server:
            twice = [answer(server, **asked)["choices"] for _ in range(2)]
        assert (twice[0] == twice[1]) is same


def test_log_probabilities_may_be_left_out_or_be_fewer_than_asked_for() -> None:
    assert choices(HONEST)[0]["logprobs"] is None
    assert choices(Manners(logprob_format="none"), logprobs=5)[0]["logprobs"] is None
    assert choices(Manners(logprob_format="none"), messages=HELLO, logprobs=True)[0]["logprobs"] is None
    capped = Manners(logprob_format="content", silently_capped_logprobs=2)
    told = choices(capped, logprobs=50)[0]["logprobs"]["content"]
    assert all(len(entry["top_logprobs"]) == 2 for entry in told)


def test_no_tokens_may_be_one_token() -> None:
    assert texts(HONEST, max_tokens=0) == [""]
    one = Manners(max_tokens_zero="one_token")
    assert choices(one, max_tokens=0) == choices(HONEST, max_tokens=1)


@pytest.mark.parametrize(
    ("manners", "body", "status", "words"),
    [
        (HONEST, {"model": "gpt-9"}, 404, "The model `gpt-9` does not exist"),
        (HONEST, {"n": 0}, 400, "'n'"),
        (HONEST, {"prompt": [1, 260]}, 400, "invalid tokens"),
        (HONEST, {"grammar": 'root ::= "a"'}, 400, "Unrecognized request argument supplied: grammar"),
        (Manners(refused_fields=frozenset({"min_p"})), {"min_p": 0}, 400, "supplied: min_p"),
        (Manners(completions=False), {}, 404, "Invalid URL"),
        (Manners(takes_ids=False), {"prompt": [97]}, 400, "valid string"),
        (Manners(takes_lists=False), {"prompt": ["a", "b"]}, 400, "list"),
        (Manners(n="refused"), {"n": 2}, 400, "Only one"),
        (Manners(most_n=2), {"n": 3}, 400, "1 <= value <= 2"),
        (Manners(most_logprobs=5), {"logprobs": 6}, 400, "<= 5"),
        (Manners(max_tokens_zero="refused"), {"max_tokens": 0}, 400, "at least 1"),
        (Manners(context_length=9), {"prompt": "pear", "max_tokens": 6}, 400, "maximum context length is 9"),
        (Manners(context_length=3, context_words="llama.cpp"), {"prompt": "pear"}, 400, "request (4 tokens)"),
        (Manners(grammar="gbnf"), {"grammar": 'root ::= "a" | "b"'}, 400, "failed to parse grammar"),
        (Manners(grammar="structured_outputs"), {"grammar": 'root ::= "a"'}, 400, "Unrecognized"),
    ],
)
def test_what_it_does_not_take_it_refuses_in_words(
    manners: Manners, body: dict[str, Any], status: int, words: str
) -> None:
    with ToyServer(manners) as server:
        got, told = ask(server, "/v1/completions", body)
    assert got == status
    assert words in told["error"]["message"]


def test_a_completion_is_cut_at_the_end_of_llama_cpps_context() -> None:
    narrow = Manners(context_length=7, context_words="llama.cpp", logprob_format="content", grammar="gbnf")
    told = choices(narrow, max_tokens=50, grammar='root ::= "abcdef"')[0]
    assert (told["text"], told["finish_reason"]) == ("abc", "length")


def test_a_wrong_key_is_refused_and_repeated() -> None:
    with ToyServer(Manners(key="right")) as server:
        for path, body in (("/v1/models", None), ("/v1/completions", {"prompt": "a"})):
            status, told = ask(server, path, body, key="wrong")
            assert (status, told["error"]["code"]) == (401, "invalid_api_key")
            assert "wrong" in told["error"]["message"]
            assert ask(server, path, body, key="right")[0] == 200


@pytest.mark.parametrize(
    ("way", "body"),
    [
        ("gbnf", {"grammar": 'root ::= "a\\nb\\"é"'}),
        ("structured_outputs", {"structured_outputs": {"grammar": 'root ::= "a\\nb\\"é"'}}),
        ("guided_grammar", {"guided_grammar": 'root ::= "a\\nb\\"é"'}),
    ],
)
def test_a_grammar_that_is_one_literal_is_spelt_in_single_bytes(way: Any, body: dict[str, Any]) -> None:
    told = choices(Manners(grammar=way), logprobs=0, **body)[0]
    assert (told["text"], told["finish_reason"]) == ('a\nb"é', "stop")
    assert told["logprobs"]["tokens"] == ["a", "\n", "b", '"', "bytes:\\xc3", "bytes:\\xa9", "<|end|>"]
    model = ToyModel()
    assert told["logprobs"]["token_logprobs"][:2] == [model.logprobs(b"pear")[97], model.logprobs(b"peara")[10]]
    assert texts(Manners(grammar_ignored=True), **body) == texts(HONEST)


def test_llama_cpps_extras_tell_tokens_sizes_and_the_end() -> None:
    with ToyServer(LLAMA_CPP) as server:
        whole = {"content": "aé<|end|>", "add_special": True, "parse_special": True}
        assert ask(server, "/tokenize", whole)[1] == {"tokens": [97, 0xC3, 0xA9, END]}
        told = ask(server, "/tokenize", {**whole, "with_pieces": True})[1]["tokens"]
        assert [token["piece"] for token in told] == ["a", [0xC3], [0xA9], "<|end|>"]
        assert [token["id"] for token in told] == [97, 0xC3, 0xA9, END]
        assert ask(server, "/tokenize", {**whole, "parse_special": False})[1]["tokens"][3:] == list(b"<|end|>")
        props = ask(server, "/props")[1]
        assert (props["total_slots"], props["eos_token"]) == (4, "<|end|>")
        assert props["default_generation_settings"]["n_ctx"] == LLAMA_CPP.context_length
        listed = ask(server, "/v1/models")[1]["data"][0]
        assert (listed["id"], listed["meta"]["n_vocab"]) == ("toy", len(TOKENS))
        assert ask(server, "/v1/completions", {"prompt": "a", "model": "whatever"})[0] == 200
    with ToyServer(Manners(tokenize="vllm", models_tell="max_model_len")) as server:
        assert ask(server, "/tokenize", {"model": "toy", "prompt": "ab"})[1]["tokens"] == [97, 98]
        assert ask(server, "/v1/models")[1]["data"][0]["max_model_len"] == 4096
        assert ask(server, "/props")[0] == 404


def test_usage_counts_what_was_read_written_and_read_before() -> None:
    with ToyServer() as server:
        asked = {"prompt": ["pear", "peach"], "n": 2, "max_tokens": 3, "logprobs": 0}
        told = answer(server, **asked)
        written = sum(len(choice["logprobs"]["tokens"]) for choice in told["choices"])
        usage = told["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (9, written)
        assert (usage["total_tokens"], usage["prompt_tokens_details"]) == (9 + written, {"cached_tokens": 3})
        again = answer(server, prompt="peach")["usage"]
        assert again["prompt_tokens_details"]["cached_tokens"] == 5
    with ToyServer(Manners(usage_of_first=True)) as server:
        assert answer(server, **asked)["usage"]["prompt_tokens"] == 4
    with ToyServer(Manners(usage_told=False)) as server:
        assert "usage" not in answer(server)


def test_a_web_page_is_a_web_page_whatever_is_asked() -> None:
    with ToyServer(Manners(html=True)) as server:
        status, page = ask(server, "/v1/completions", {"prompt": "a"})
    assert status == 200
    assert page.startswith(b"<!doctype html>")


def test_it_remembers_what_it_was_asked_over_how_many_connections() -> None:
    with ToyServer() as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=10)
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


def test_it_ends_at_once_with_connections_open_and_leaves_no_thread() -> None:
    threads = set(threading.enumerate())
    with ToyServer() as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=10)
        connection.request("GET", "/v1/models")
        connection.getresponse().read()
        begun = time.monotonic()
    assert time.monotonic() - begun < 5
    assert set(threading.enumerate()) <= threads
    connection.close()
