"""The API on a real server with the tuned calendar: what each endpoint returns, and how bad input fails."""

import json
import threading
from typing import Any

import httpx2
import pytest

from support.cli_runner import fewparse
from support.serving import LIMITS, PROGRAM, UTTERANCE, Served

UNUSUAL = ("id", "usage")


def comparable(parse: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parse.items() if name not in UNUSUAL}


def error_of(response: httpx2.Response) -> Any:
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "hint", "details"}
    return body["error"]


def test_a_parse_is_what_the_command_line_prints(served: Served) -> None:
    (parse,) = served.post("/v1/parse", {"domain": "calendar", "utterance": UTTERANCE}).json()["parses"]
    printed = json.loads(fewparse("parse", "calendar", UTTERANCE, "--json").out)
    assert comparable(parse) == comparable(printed)
    assert set(parse) - set(printed) == {"id"}
    assert parse["program"] == PROGRAM


def test_many_utterances_are_parsed_in_order_with_an_error_for_each_that_fails(served: Served) -> None:
    too_long = "when " * 99
    body = {"utterances": [UTTERANCE, too_long + "x" * 100, "who works with Ben?"]}
    answered = served.post("/v1/parse", body).json()
    assert answered["domain"] == "calendar"
    first, second, third = answered["parses"]
    assert (first["utterance"], third["utterance"]) == (UTTERANCE, "who works with Ben?")
    assert first["program"] == PROGRAM
    assert set(second) == {"utterance", "error"}
    assert second["error"]["code"] == "text_too_long"


def test_details_have_the_examples_the_prompt_and_the_trace(served: Served) -> None:
    body = {"utterance": UTTERANCE, "details": True, "options": {"width": 2}}
    (parse,) = served.post("/v1/parse", body).json()["parses"]
    details = parse["details"]
    assert UTTERANCE in details["prompt"]
    assert [event["event"] for event in details["trace"]][:2] == ["RoundStarted", "Sampled"]
    assert len([event for event in details["trace"] if event["event"] == "Sampled"]) <= 2


def test_a_program_is_checked_with_the_position_of_the_mistake(served: Served) -> None:
    wrong = PROGRAM.replace("Elena", "Elen")
    found = served.post("/v1/check", {"text": wrong, "target": "program"}).json()
    assert (found["accepted"], found["position"], found["expected"]) == (False, wrong.index("Elen") + 4, ["'a'"])
    assert served.post("/v1/check", {"text": PROGRAM, "target": "program"}).json()["accepted"] is True
    assert served.post("/v1/check", {"text": "when is my next meeting"}).json()["target"] == "canonical"


def test_translation_goes_both_ways_with_its_tree(served: Served) -> None:
    there = served.post("/v1/translate", {"text": PROGRAM, "to": "utterance"}).json()
    assert there["output"] == "when is my next meeting with Elena"
    back = served.post("/v1/translate", {"text": there["output"], "to": "program", "tree": True}).json()
    assert back["output"] == PROGRAM

    def text(node: Any) -> str:
        return node if isinstance(node, str) else "".join(map(text, node["children"]))

    assert text(back["tree"]) == there["output"]


def test_a_program_is_executed(served: Served) -> None:
    found = served.post("/v1/execute", {"program": PROGRAM}).json()
    assert (found["answer"], found["error"]) == ("Wed 2026-03-11 3:00pm", None)
    failed = served.post("/v1/execute", {"program": "(when"}).json()
    assert failed["answer"] is None
    assert failed["error"]


def test_every_completion_leads_to_an_output(served: Served) -> None:
    body = {"text": "(when (", "target": "program", "limit": 50}
    found = served.post("/v1/complete", body).json()
    assert found["valid"] == len(body["text"])  # type: ignore[arg-type]
    assert "next " in found["completions"]
    assert not found["accepted"]
    for completion in found["completions"]:
        longer = served.post("/v1/complete", body | {"text": f"{body['text']}{completion}"}).json()
        assert longer["valid"] == len(body["text"]) + len(completion)  # type: ignore[arg-type]


def test_completions_follow_the_valid_part_and_copy_from_the_utterance(served: Served) -> None:
    found = served.post("/v1/complete", {"text": "(when [", "target": "program"}).json()
    assert (found["valid"], found["completions"] != []) == (len("(when "), True)
    title = {"text": '(when (meeting "', "target": "program", "utterance": "when is the budget review"}
    assert any("budget" in each for each in served.post("/v1/complete", title).json()["completions"])
    whole = served.post("/v1/complete", {"text": PROGRAM, "target": "program"}).json()
    assert (whole["accepted"], whole["completions"]) == (True, [])


def test_domains_and_models_are_described_without_paths(served: Served) -> None:
    assert [domain["name"] for domain in served.client.get("/v1/domains").json()["domains"]] == ["calendar"]
    response = served.client.get("/v1/domains/calendar")
    found = response.json()
    assert found["options"]["decoder"] in found["decoders"]
    assert found["options"]["adapter"] == "adapter-canonical.gguf"
    assert found["grammar"]["sides"]["program"]["productions"] > 100
    assert found["examples"][0]["utterance"] == "What's on my calendar tomorrow?"
    assert "/calendar/" not in response.text
    (model,) = served.client.get("/v1/models").json()["models"]
    assert model["name"] == "embedded:smollm2-135m" or "/" not in model["name"]


def test_the_health_checks_and_the_metrics(served: Served) -> None:
    assert served.client.get("/healthz").json() == {"status": "ok"}
    assert served.client.get("/readyz").json() == {"status": "ready"}
    served.post("/v1/parse", {"utterance": UTTERANCE})
    metrics = served.client.get("/metrics").text
    assert 'fewparse_parses_total{domain="calendar",outcome="parsed"}' in metrics
    assert 'fewparse_requests_total{method="POST",route="/v1/parse",status="200"}' in metrics
    assert "Elena" not in metrics


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"utterance": UTTERANCE, "domain": "calender"}, 404, "Did you mean calendar?"),
        ({}, 422, "`utterance`"),
        ({"utterance": UTTERANCE, "utterances": [UTTERANCE]}, 422, "either"),
        ({"utterances": []}, 422, "utterances"),
        ({"utterances": ["x"] * 10_000}, 413, "10000"),
        ({"utterance": " "}, 422, "must not be empty"),
        ({"utterance": 7}, 422, "valid string"),
        ({"utterance": UTTERANCE, "width": 3}, 422, "width"),
        ({"utterance": UTTERANCE, "options": {"width": 1000}}, 422, "options.width"),
        ({"utterance": UTTERANCE, "options": {"width": 50}}, 422, "at most 20"),
        ({"utterance": UTTERANCE, "options": {"decoder": "beem"}}, 422, "Did you mean beam?"),
        ({"utterance": UTTERANCE, "context": "before", "options": {"adapter": "none"}}, 422, "context"),
        ({"utterance": UTTERANCE, "deadline": 0}, 422, "greater than 0"),
    ],
)
def test_a_wrong_request_is_explained(served: Served, body: Any, status: int, words: str) -> None:
    response = served.client.post(
        "/v1/parse", content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert response.status_code == status
    assert words in response.text


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b'{"utterance": "\xff"}', 400, "invalid_json"),
        (b'{"utterance": "\\ud800"}', 400, "invalid_json"),
        (b"[" * 20_000, 400, "invalid_json"),
        (b"[]", 422, "invalid_request"),
        (b" " * (LIMITS.body_bytes + 1), 413, "body_too_large"),
    ],
)
def test_a_body_that_is_not_json_is_refused(served: Served, content: bytes, status: int, code: str) -> None:
    response = served.client.post("/v1/parse", content=content, headers={"Content-Type": "application/json"})
    assert (response.status_code, error_of(response)["code"]) == (status, code)


def test_an_oversized_body_without_a_length_is_refused(served: Served) -> None:
    def chunks() -> Any:
        for _ in range(200):
            yield b" " * 1000

    response = served.client.post("/v1/parse", content=chunks(), headers={"Content-Type": "application/json"})
    assert (response.status_code, error_of(response)["code"]) == (413, "body_too_large")


def test_other_media_types_methods_and_paths_are_refused(served: Served) -> None:
    text = served.client.post("/v1/parse", content=b"{}", headers={"Content-Type": "text/plain"})
    assert (text.status_code, error_of(text)["code"]) == (415, "unsupported_media_type")
    wrong = served.client.get("/v1/parse")
    assert (wrong.status_code, error_of(wrong)["code"]) == (405, "method_not_allowed")
    assert (served.client.get("/v1/parze").status_code, served.client.get("/../secret").status_code) == (404, 404)


def test_a_grammar_that_is_being_written_is_checked(served: Served) -> None:
    grammar = 'start: "(" ("on" | "off") " lamp)"\n'
    good = {"utterance": "light please", "program": "(on lamp)"}
    body = {"grammar": grammar, "dialect": "lark", "examples": [good], "sentences": 3}
    found = served.post("/v1/scratch", body).json()
    assert found["passed"]
    assert {each["program"] for each in found["sentences"]} <= {"(on lamp)", "(off lamp)"}
    bad = served.post("/v1/scratch", body | {"examples": [good, good | {"program": "(on lump)"}]}).json()
    assert not bad["passed"]
    assert bad["findings"][0]["location"] == "examples.jsonl:2"
    broken = served.post("/v1/scratch", body | {"grammar": "start: ("}).json()
    assert not broken["passed"]
    assert "grammar.lark:1" in broken["findings"][0]["message"]
    assert "/tmp" not in json.dumps(broken)


def test_health_is_answered_while_the_model_works(served: Served) -> None:
    done = threading.Event()

    def parse() -> None:
        served.post("/v1/parse", {"utterances": [UTTERANCE, "who works with Ben?"]})
        done.set()

    thread = threading.Thread(target=parse)
    thread.start()
    answered = 0
    while not done.is_set():
        assert served.client.get("/healthz").status_code == 200
        answered += 1
    thread.join()
    assert answered > 2  # one at a time would be answered before and after the two parses only
