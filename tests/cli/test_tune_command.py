"""`fewparse tune`: an adapter, or a clear error."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fewparse.domains.load import load_domain
from fewparse.lm.adapter import read_adapter
from fewparse.lm.catalogue import GEMMA3
from fewparse.lm.gguf import file_sha256
from fewparse.lm.load import EMBEDDED
from fewparse.options import Options
from fewparse.tune.config import TuneConfig
from support.cli_runner import CommandResult, fewparse, fewparse_process, start_process, without_model
from support.extras import need_stored, need_torch
from support.switch_domain import EXAMPLES, make_switches
from support.tiny_model import write_tiny_model

QUICK = ("--rank", "2", "--learning-rate", "0.02", "--epochs", "1", "--held-out", "0")
UTTERANCE = EXAMPLES[0].utterance
WITHOUT_TORCH = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small random model."""
    need_torch()
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="module")
def switches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_switches(tmp_path_factory.mktemp("domains") / "switches").folder


@pytest.fixture(scope="module")
def tuned(tiny: Path, switches: Path) -> CommandResult:
    """A finished run; its adapter is next to the domain's examples."""
    return fewparse("tune", str(switches), "--model", f"gguf:{tiny}", *QUICK[:-2])


def test_the_steps_are_explained_before_they_are_done(tuned: CommandResult, tiny: Path) -> None:
    assert tuned.code == 0
    explained = " ".join(tuned.err.split())
    assert explained.startswith(
        f"Tuning gguf:{tiny} on the 12 examples of switches (target program). 1. Choose the"
    )
    assert "train on 7 examples, and parse the other 5 after each epoch. The model has not seen these" in explained
    assert "2. Train on all 12 examples for the chosen number of epochs, and write an adapter" in explained


def test_the_summary_shows_the_learning_curve_its_meaning_and_the_next_steps(
    tuned: CommandResult, tiny: Path, switches: Path
) -> None:
    adapter = switches / "adapter-program.gguf"
    lines = tuned.out.splitlines()
    assert lines[0].startswith("switches, target program: tuned on 12 examples, 1 epochs, ")
    assert re.fullmatch(r"  loss +[▁-█]  [0-9.]+ to [0-9.]+", lines[1])
    assert re.fullmatch(r"  held-out right +[▁-█]  [0-5] to [0-5] of 5; epoch 1 of 1 is chosen", lines[2])
    *meaning, file, picture, next_step, calibration = lines[3:]
    said = " ".join(" ".join(meaning).split())
    assert re.match(r"[0-5] of 5 held-out examples were right after 1 epochs, before the model had learned ", said)
    assert re.search(r" 5 examples only say that it is between [0-9]+% and [0-9]+% \(95% interval\)", said)
    assert max(map(len, meaning)) <= 80
    assert file == f"  {adapter} (0.0 MB)"
    assert picture == f"  {switches / 'adapter-program.svg'} (the learning curve)"
    arguments = f"{switches} --target program --model gguf:{tiny} --adapter {adapter}"
    assert next_step == f"  Try it: fewparse eval {arguments}"
    assert calibration == f"  Calibrate its confidence: fewparse calibrate {arguments}"
    assert read_adapter(adapter).provenance is not None
    assert not list(switches.glob("*.tuning"))


def test_an_adapter_is_no_longer_used_after_the_grammar_has_changed(tiny: Path, tmp_path: Path) -> None:
    folder = make_switches(tmp_path / "switches").folder
    path = tmp_path / "a.gguf"
    ended = fewparse("tune", str(folder), "--model", f"gguf:{tiny}", *QUICK, "--out", str(path), "--json")
    assert json.loads(ended.out)["outputs_sha256"] is not None
    path.rename(folder / "adapter-program.gguf")
    assert resolve(folder).adapter is not None
    grammar = folder / "grammar.lark"
    grammar.write_text(grammar.read_text().replace('"lamp"', '"lamp" | "fan"'))
    assert "it was tuned for another grammar" in str(resolve(folder).adapter_note)


def resolve(folder: Path) -> Options:
    return Options.resolve(load_domain(folder), EMBEDDED)


def test_json_has_the_path_and_the_provenance_of_the_adapter(tiny: Path, switches: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "adapter.gguf"
    ended = fewparse(
        *("tune", str(switches), "--model", f"gguf:{tiny}", *QUICK, "--pool", "10", "--out", str(path), "--json")
    )
    assert ended.code == 0
    assert "Train on all 10 examples for 1 epochs" in " ".join(ended.err.split())
    summary = json.loads(ended.out)
    assert (summary["curve"]["held_out"], len(summary["curve"]["refit"])) == (0, 1)
    assert (summary["adapter"], summary["bytes"]) == (str(path), path.stat().st_size)
    figures = tuple(summary[name] for name in ("domain", "target", "examples", "epochs"))
    assert figures == ("switches", "program", 10, 1)
    assert (summary["base"], summary["base_sha256"]) == (f"gguf:{tiny}", file_sha256(tiny))
    expected = TuneConfig(rank=2, learning_rate=0.02, epochs=1, held_out=0.0)
    assert summary["config"] == expected.as_dict()


def test_parse_uses_the_given_adapter(tuned: CommandResult, tiny: Path, switches: Path) -> None:
    adapter = switches / "adapter-program.gguf"
    command = ("parse", str(switches), UTTERANCE, "--json", "--model", f"gguf:{tiny}", "--adapter")
    plain, adapted = (fewparse(*command, which) for which in ("none", str(adapter)))
    assert (plain.code, adapted.code) == (0, 0), plain.err + adapted.err
    assert json.loads(plain.out)["model"] == f"gguf:{tiny}"
    assert json.loads(adapted.out)["model"] == f"gguf:{tiny} + adapter-program.gguf"
    assert [json.loads(ended.out)["examples_used"] for ended in (plain, adapted)] == [2, 0]


def test_an_adapter_for_other_weights_is_rejected(
    tuned: CommandResult, tiny: Path, switches: Path, tmp_path: Path
) -> None:
    other = write_tiny_model(tmp_path / "other.gguf", seed=2)
    adapter = switches / "adapter-program.gguf"
    ended = fewparse("parse", str(switches), UTTERANCE, "--model", f"gguf:{other}", "--adapter", str(adapter))
    assert (ended.code, ended.out) == (1, "")
    assert f"the adapter {adapter} was tuned for gguf:{tiny}, and gguf:{other} has other weights" in ended.err
    assert "--adapter none" in ended.err


MISUSES = {
    "domain": (["starterr"], "unknown domain 'starterr'", "Did you mean starter?"),
    "too few": (["starter", "--pool", "9"], "9 examples are too few to tune a model", "at least 10"),
    "target": (["starter", "--target", "progam"], "unknown target 'progam'", "Did you mean program?"),
    "no canonical": (["starter", "--target", "canonical"], "lacks canonical utterances", "`program`"),
    "no rate": (["starter", "--learning-rate", "0"], "learning_rate is 0.0, but must be above 0", "at most 1"),
    "no number": (["starter", "--learning-rate", "nan"], "learning_rate is nan, but must be above 0", "at most 1"),
    "no epochs": (["starter", "--epochs", "0"], "epochs is 0, but must be from 1 to 1000", ""),
    "nearly all held out": (["starter", "--held-out", "0.9"], "held_out is 0.9, but must be from 0 to 0.5", ""),
    "no patience": (["starter", "--patience", "0"], "patience is 0, but must be at least 1", ""),
    "unknown layer": (["starter", "--layers", "attn_q,attn"], "unknown layer 'attn'", "Did you mean attn_"),
    "a folder": (["starter", "--out", "."], ". is a folder", "--out adapter.gguf"),
}


@pytest.mark.parametrize(("arguments", "problem", "next_step"), MISUSES.values(), ids=MISUSES)
def test_misuse_is_explained_before_anything_is_loaded(
    arguments: list[str], problem: str, next_step: str, tmp_path: Path
) -> None:
    ended = fewparse("tune", *arguments, env=without_model(tmp_path) | hidden_torch(tmp_path))
    assert problem in ended.err
    assert next_step in ended.err
    assert (ended.code, ended.out) == (2, "")


def hidden_torch(folder: Path) -> dict[str, str]:
    """An environment in which torch is not installed."""
    (folder / "torch.py").write_text(WITHOUT_TORCH)
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


def test_without_torch_the_error_names_the_extra(tmp_path: Path) -> None:
    ended = fewparse_process("tune", "starter", env=without_model(tmp_path) | hidden_torch(tmp_path))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: tuning needs the packages of the extra `tune` (No module named ")
    assert "pip install 'fewparse[tune]'" in ended.err


def test_a_model_of_another_architecture_is_rejected(tiny: Path, switches: Path, tmp_path: Path) -> None:
    other = write_tiny_model(tmp_path / "qwen.gguf", architecture="qwen2")
    ended = fewparse("tune", str(switches), "--model", f"gguf:{other}", *QUICK, "--out", str(tmp_path / "a.gguf"))
    assert (ended.code, ended.out) == (1, "")
    assert f"{other} is a model of the architecture `qwen2`, and only `llama` can be tuned" in ended.err
    assert not (tmp_path / "a.gguf").exists()


def test_gemma_cannot_be_tuned(switches: Path, tmp_path: Path) -> None:
    need_torch()
    need_stored(GEMMA3)
    path = tmp_path / "a.gguf"
    ended = fewparse("tune", str(switches), "--model", "embedded:gemma3-270m", *QUICK, "--out", str(path))
    assert (ended.code, ended.out) == (1, "")
    assert "is a model of the architecture `gemma3`, and only `llama` can be tuned" in ended.err
    assert not path.exists()


def test_a_path_that_cannot_be_written_is_named(tiny: Path, switches: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "adapter.gguf"
    ended = fewparse("tune", str(switches), "--model", f"gguf:{tiny}", *QUICK, "--out", str(path))
    assert (ended.code, ended.out) == (1, "")
    assert f"error: {path}" in ended.err
    assert "cannot be written" in ended.err
    assert "--out" in ended.err


def interrupt(process: subprocess.Popen[bytes], file: Path) -> bytes:
    """Send Ctrl-C as soon as a file exists; return standard error."""
    while not file.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=120)[1]


def test_ctrl_c_ends_a_run_with_130_and_the_same_command_resumes_it(
    tiny: Path, switches: Path, tmp_path: Path
) -> None:
    path, checkpoint = tmp_path / "adapter.gguf", tmp_path / "adapter.gguf.tuning"
    longer = ("--pool", "10", "--batch-size", "10", "--rank", "2", "--epochs", "200", "--held-out", "0")
    command = ("tune", str(switches), "--model", f"gguf:{tiny}", *longer, "--out", str(path))
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a child process would inherit an ignored SIGINT
    try:
        process = start_process(*command)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        error = interrupt(process, checkpoint)
    assert process.returncode == 130
    assert b"Traceback" not in error
    assert (path.exists(), checkpoint.exists()) == (False, True)
    ended = fewparse(*command, "--json")
    assert ended.code == 0
    assert (path.exists(), checkpoint.exists()) == (True, False)
    assert json.loads(ended.out)["epochs"] == 200
