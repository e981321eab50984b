"""`fewparse parse`, with the real embedded model."""

import json
import signal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fewparse.domains.load import load_domain
from fewparse.vocabulary import BYTES
from support.cli_runner import HALL, QUICK, CommandResult, fewparse, fewparse_process, start_process

KEYS = {
    *("utterance", "target", "output", "program", "answer", "answer_error", "failure", "candidates"),
    *("confidence", "decision", "question"),
    *("examples_used", "examples_dropped", "description_lines_dropped", "notes", "usage", "model"),
}
REMOTE_USAGE = {"cached_requests", "retries", "cached_prompt_tokens", "cost"}
"""Counters that are positive only with a remote model."""
USAGE = {
    *("requests", "rounds", "prompt_tokens", "completion_tokens"),
    *("prefill_tokens", "forward_tokens", "forward_passes", "seconds"),
}
STOP = "stop the radio in the office"


@pytest.fixture(scope="module")
def lines() -> CommandResult:
    """The JSON for two utterances with blank lines and an invalid line between them."""
    given = f"{HALL}\r\n\n   \n".encode() + b"turn on the l\xff\n" + STOP.encode()
    # A new process, because the prompt may be in the cache of the shared model.
    return fewparse_process("parse", "starter", "--json", *QUICK, stdin=given)


def objects(ended: CommandResult) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ended.out.splitlines()]


def test_every_line_of_standard_input_is_parsed_in_order_and_blank_lines_are_skipped(lines: CommandResult) -> None:
    assert [o["utterance"] for o in objects(lines)] == [HALL, None, STOP]


def test_a_line_that_is_not_utf8_is_reported_with_its_number_and_the_others_are_parsed(
    lines: CommandResult,
) -> None:
    first, invalid, last = objects(lines)
    assert "line 4: not UTF-8 text (byte 14 of the line)" in lines.err
    assert set(invalid) == {"utterance", "error"}
    assert "UTF-8" in invalid["error"]
    assert first["output"]
    assert last["output"]
    assert lines.code == 1


def test_an_output_at_the_token_limit_is_truncated_or_with_a_grammar_completed() -> None:
    cut = fewparse("parse", "starter", HALL, "--max-tokens", "3", "--unconstrained", "--json", *QUICK)
    closed = fewparse("parse", "starter", HALL, "--max-tokens", "3", "--json", *QUICK)
    assert objects(cut)[0]["answer_error"]
    assert objects(closed)[0]["answer"] == {"device": "lamp", "room": "hall", "state": "on"}


def test_a_json_object_has_exactly_the_documented_keys(lines: CommandResult) -> None:
    found = objects(lines)[0]
    assert set(found) == KEYS
    assert set(found["usage"]) == USAGE | REMOTE_USAGE
    assert [set(c) for c in found["candidates"]] == [{"text", "score", "program", "model_score"}]


def test_a_json_object_has_the_result_and_its_usage(lines: CommandResult) -> None:
    found = objects(lines)[0]
    assert found["output"] == found["program"] == found["candidates"][0]["text"] == "(set (lamp hall) on)"
    assert found["answer"] == {"device": "lamp", "room": "hall", "state": "on"}
    assert (found["answer_error"], found["failure"], found["target"]) == (None, None, "program")
    assert (found["examples_used"], found["examples_dropped"]) == (2, 0)
    assert found["model"] == "embedded:smollm2-135m + adapter-program.gguf"
    assert all(found["usage"][counter] > 0 for counter in USAGE)
    assert all(found["usage"][counter] == 0 for counter in REMOTE_USAGE)


def test_the_program_of_one_utterance_is_printed_with_its_denotation() -> None:
    ended = fewparse("parse", "starter", HALL, *QUICK)
    answer = '  = {"device": "lamp", "room": "hall", "state": "on"}'
    assert ended == CommandResult(0, f"{HALL}\n  (set (lamp hall) on)\n{answer}\n", "")


@cache
def decoded(decoder: str) -> CommandResult:
    return fewparse(
        *("parse", "starter", STOP, "--json", "--examples", "2", "--decoder", decoder),
        *("--width", "2", "--n-best", "2", "--seed", "7"),
    )


@pytest.mark.parametrize("decoder", ["beam", "speculative", "greedy"])
def test_every_decoder_returns_well_formed_programs_best_first(decoder: str) -> None:
    ended = decoded(decoder)
    (found,) = objects(ended)
    grammar = load_domain("starter").constraint(BYTES, "program", STOP)
    candidates = found["candidates"]
    assert ended.code == 0
    assert 1 <= len(candidates) <= 2
    assert all(grammar.accepts(c["text"].encode()) for c in candidates)
    assert [c["score"] for c in candidates] == sorted((c["score"] for c in candidates), reverse=True)


def test_the_same_seed_gives_the_same_answer() -> None:
    decoded_again = decoded.__wrapped__("speculative")
    (one,), (other,) = objects(decoded("speculative")), objects(decoded_again)
    one["usage"].pop("seconds")
    other["usage"].pop("seconds")
    assert one == other


def test_n_best_lists_that_many_candidates_with_their_scores(yes_or_no: Path) -> None:
    ended = fewparse("parse", str(yes_or_no), "is the lamp on", "--decoder", "beam", "--n-best", "2")
    _, best, *ranked = ended.out.splitlines()
    assert [line.split()[0] for line in ranked] == ["1.", "2."]
    assert {line.split()[2] for line in ranked} == {"yes", "no"}
    assert ranked[0].split()[2] == best.strip()
    assert float(ranked[0].split()[1]) >= float(ranked[1].split()[1])


def test_an_unconstrained_output_may_be_outside_the_grammar(yes_or_no: Path) -> None:
    ended = fewparse("parse", str(yes_or_no), "is the lamp on", "--unconstrained", "--decoder", "greedy")
    assert ended == CommandResult(0, "is the lamp on\n  maybe\n", "")


def test_explain_shows_examples_prompt_rounds_and_where_samples_were_cut(yes_or_no: Path) -> None:
    ended = fewparse("parse", str(yes_or_no), "is the lamp on", "--explain", "--decoder", "speculative")
    assert ended.code == 0
    assert "2 examples by all" in ended.out
    assert "  is the radio on\n    maybe\n" in ended.out
    assert ";;; Translate questions into Lisp expressions" in ended.out
    assert "constrained speculative, width 3" in ended.out
    assert "round 1: 1 live" in ended.out
    assert "✂maybe" in ended.out
    assert ended.out.splitlines()[-1] in ("  yes", "  no")


def test_a_canonical_utterance_is_printed_with_its_program(canonical: Path) -> None:
    ended = fewparse("parse", str(canonical), "is the lamp on", "--decoder", "greedy")
    assert ended == CommandResult(0, "is the lamp on\n  it may be\n  maybe\n", "")


def test_an_utterance_longer_than_the_context_is_an_error_with_both_lengths() -> None:
    ended = fewparse("parse", "starter", "--examples", "0", stdin="lamp " * 10_000 + f"\n{HALL}\n")
    assert ended.code == 1
    assert "error: line 1: the prompt needs 10" in ended.err
    assert "the model's context holds 8192" in ended.err
    assert HALL in ended.out, "the next line is still parsed"


def test_ctrl_c_ends_a_run_with_130_after_the_results_so_far(yes_or_no: Path) -> None:
    # A child process would inherit an ignored SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = start_process("parse", str(yes_or_no), "--json", "--decoder", "greedy")
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"is the lamp on\n" * 2_000)
        process.stdin.flush()
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=120)
    answers = [json.loads(line) for line in (first + rest).splitlines()]
    assert process.returncode == 130
    assert 1 <= len(answers) < 2_000
    assert all(a["output"] in ("yes", "no") for a in answers)
    assert b"Traceback" not in err


def test_a_closed_output_pipe_ends_the_run_without_a_message(yes_or_no: Path) -> None:
    process = start_process("parse", str(yes_or_no), "--decoder", "greedy", "--unconstrained")
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"is the lamp on\n" * 50)
        process.stdin.close()
        assert process.stdout.readline() == b"is the lamp on\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
