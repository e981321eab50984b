"""Code of a domain folder runs after `fewparse trust` or with `--allow-code`, and not otherwise."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.cli_runner import (
    COMMAND,
    HALL,
    QUICK,
    CommandResult,
    fewparse,
    fewparse_process,
    start_process,
    without_model,
)
from support.domain_files import copy_starter, to_json_lines

ASK = "(ask (radio kitchen))"
NOT_RUN = "the executor was not run: the folder is not trusted"


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEWPARSE_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The file that the code of `folder` creates when it is loaded."""
    return tmp_path / "ran"


@pytest.fixture
def folder(tmp_path: Path, ran: Path) -> Path:
    """A domain folder from elsewhere; its code leaves a trace."""
    folder = copy_starter(tmp_path / "from elsewhere")
    trace = f"open({str(ran)!r}, 'w').close()\n"
    source = (folder / "executor.py").read_text()
    (folder / "executor.py").write_text(f"{source}\n{trace}normal = str\n")
    for name in ("conftest.py", "__init__.py", "sitecustomize.py", "json.py"):
        (folder / name).write_text(trace)
    return folder


def advice(folder: Path) -> str:
    return f"Review its code, then: fewparse trust {shlex.quote(str(folder))}, or --allow-code"


def test_os_system_as_an_executor_is_never_run(folder: Path, ran: Path, tmp_path: Path) -> None:
    settings = (folder / "domain.toml").read_text().replace("executor.py:execute", "os:system")
    settings = settings.replace('kind = "grammar"', 'kind = "trie"').replace('copy = ["NOTE"]', "")
    (folder / "domain.toml").write_text(settings)
    (folder / "examples.jsonl").write_text(to_json_lines([{"utterance": "u", "program": f"touch {ran}"}]))
    for arguments in (["check", str(folder)], ["check", str(folder), "--allow-code"], ["execute", str(folder)]):
        fewparse(*arguments, stdin=f"touch {ran}\n", env=without_model(tmp_path))
    fewparse("trust", str(folder))
    ended = fewparse("check", str(folder), env=without_model(tmp_path))
    assert "no installed package declares `os:system`" in ended.err
    assert ended.code == 1
    assert not ran.exists()


def test_check_runs_no_code_and_says_so(folder: Path, ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for place in (".", str(folder)):
        ended = fewparse_process("check", place, "--model", "none")
        assert ended.code == 0, ended.err
        assert ended.err.count(f"warning: {NOT_RUN}. ") == 1
        assert not ran.exists()
    ended = fewparse("check", str(folder), "--model", "none", "--json")
    assert json.loads(ended.out)["executed"] is False
    assert f"{NOT_RUN}. {advice(folder)}" in ended.err


def test_parse_runs_no_code_and_gives_the_reason(folder: Path, ran: Path) -> None:
    ended = fewparse("parse", str(folder), *QUICK, "--json", stdin=f"{HALL}\n{HALL}\n")
    assert ended.code == 0, ended.err
    assert ended.err == f"warning: {NOT_RUN}. {advice(folder)} (in Python, allow_code=True).\n"
    for line in map(json.loads, ended.out.splitlines()):
        assert (line["answer"], line["answer_error"]) == (None, NOT_RUN)
        assert line["program"]
    assert not ran.exists()
    shown = fewparse("parse", str(folder), HALL, *QUICK)
    assert shown.out.splitlines()[2] == f"  = error: {NOT_RUN}"


def test_a_vote_needs_code(folder: Path, ran: Path) -> None:
    ended = fewparse("parse", str(folder), HALL, *QUICK, "--vote")
    assert (ended.code, ended.out) == (2, "")
    assert NOT_RUN in ended.err
    settings = (folder / "domain.toml").read_text()
    (folder / "domain.toml").write_text(f"{settings}vote = true\n")
    ended = fewparse("parse", str(folder), HALL, *QUICK)
    assert ended.code == 0
    assert NOT_RUN in ended.err
    assert not ran.exists()


@pytest.mark.parametrize("command", ["check", "stats", "render", "export"])
def test_grammar_commands_run_no_code(command: str, folder: Path, ran: Path) -> None:
    options = ["--as", "gbnf"] if command == "export" else []
    ended = fewparse("grammar", command, str(folder), *options)
    assert (ended.code, ended.err) == (0, "")
    assert not ran.exists()


REFUSED = {"execute": ["execute"], "eval": ["eval"], "tune": ["tune"]}


@pytest.mark.parametrize("command", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("key", ["executor", "normal_form"])
def test_a_command_that_needs_code_is_refused(
    key: str, command: list[str], folder: Path, ran: Path, tmp_path: Path
) -> None:
    if key == "normal_form" and command == ["execute"]:
        return
    settings = (folder / "domain.toml").read_text()
    name = {"executor": "execute", "normal_form": "normal"}[key]
    (folder / "domain.toml").write_text(
        settings.replace('executor = "executor.py:execute"', f'{key} = "executor.py:{name}"')
    )
    ended = fewparse(*command, str(folder), stdin=f"{ASK}\n", env=without_model(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert f"error: the {key.replace('_', ' ')} was not run: the folder is not trusted" in ended.err
    assert advice(folder) in ended.err
    assert not ran.exists()


def test_tune_without_held_out_examples_needs_no_code(folder: Path, ran: Path, tmp_path: Path) -> None:
    ended = fewparse("tune", str(folder), "--held-out", "0", env=without_model(tmp_path))
    assert NOT_RUN not in ended.err
    assert not ran.exists()


def test_allow_code_is_for_one_command_only(folder: Path, ran: Path) -> None:
    assert fewparse("execute", str(folder), "--allow-code", stdin=f"{ASK}\n") == CommandResult(0, "on\n", "")
    assert ran.exists()
    assert fewparse("execute", str(folder), stdin=f"{ASK}\n").code == 2


def test_a_trusted_folder_runs_until_the_trust_is_removed(folder: Path) -> None:
    assert fewparse("trust", str(folder)) == CommandResult(0, f"Trusted: {folder}\n", "")
    assert fewparse("execute", str(folder), stdin=f"{ASK}\n") == CommandResult(0, "on\n", "")
    checked = fewparse("check", str(folder), "--model", "none", "--json")
    assert (checked.err, json.loads(checked.out)["executed"]) == ("", True)
    parsed = fewparse("parse", str(folder), HALL, *QUICK, "--json")
    assert (parsed.err, json.loads(parsed.out)["answer_error"]) == ("", None)
    assert fewparse("trust", "--list") == CommandResult(0, f"{folder}\n", "")
    assert fewparse("trust", "--remove", str(folder)).code == 0
    assert fewparse("trust", "--list") == CommandResult(0, "", "")
    assert fewparse("execute", str(folder), stdin=f"{ASK}\n").code == 2


def test_a_folder_made_by_new_is_trusted_and_a_moved_one_is_not(tmp_path: Path) -> None:
    made = tmp_path / "made"
    assert fewparse("new", "home", "--in", str(made)).err == ""
    assert fewparse("execute", str(made), stdin=f"{ASK}\n").out == "on\n"
    made.rename(tmp_path / "moved")
    assert NOT_RUN in fewparse("execute", str(tmp_path / "moved"), stdin=f"{ASK}\n").err


def test_new_without_a_place_for_the_record_makes_the_folder_and_warns(config: Path, tmp_path: Path) -> None:
    config.write_text("not a folder")
    ended = fewparse("new", "home", "--in", str(tmp_path / "made"))
    assert ended.code == 0
    assert "cannot be written" in ended.err
    assert (tmp_path / "made" / "domain.toml").exists()


def test_a_damaged_record_is_named_and_the_folder_is_not_trusted(folder: Path, config: Path) -> None:
    fewparse("trust", str(folder))
    (record,) = (config / "trusted").iterdir()
    record.write_text("{")
    ended = fewparse("execute", str(folder), stdin=f"{ASK}\n")
    assert ended.code == 2
    assert f"warning: {record}: this record of a trusted folder is damaged" in ended.err
    assert fewparse("trust", "--list").code == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give a folder to trust"),
        (["--list", "."], "give a folder to trust"),
        (["no-such-folder"], "is not a domain folder"),
        (["--remove", "no-such-folder"], "is not a trusted folder"),
        (["x" * 5000], "more than a file system allows"),
    ],
)
def test_a_mistake_is_a_usage_error(arguments: list[str], problem: str) -> None:
    ended = fewparse("trust", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err


def test_a_bundled_domain_needs_no_trust() -> None:
    assert fewparse("execute", "starter", stdin=f"{ASK}\n") == CommandResult(0, "on\n", "")


def test_what_the_code_prints_does_not_mix_with_the_output(folder: Path, tmp_path: Path) -> None:
    printing = (
        "import os\ndef execute(program):\n    print('printed'); os.write(1, b'written\\n'); return {'a': 1}\n"
    )
    (folder / "executor.py").write_text(printing)
    ended = fewparse_process("execute", str(folder), "--allow-code", stdin=f"{ASK}\n")
    assert (ended.code, ended.out) == (0, '{"a": 1}\n')
    assert set(ended.err.split()) == {"printed", "written"}


def test_an_executor_that_exits_or_hangs_is_an_error_line(folder: Path) -> None:
    source = "import os, sys\ndef execute(program):\n    exec(program)\n    return 1\n"
    (folder / "executor.py").write_text(source)
    programs = "sys.exit(0)\nos._exit(0)\nwhile True: pass\nraise KeyboardInterrupt\n"
    programs += "raise ValueError('\\x1b[2J')\nx = 1\n"
    ended = fewparse(
        "execute", str(folder), "--allow-code", stdin=programs, env={"FEWPARSE_EXECUTION_SECONDS": "0.3"}
    )
    assert ended.code == 1
    assert ended.out.splitlines() == [
        "error: SystemExit: 0",
        "error: the code ended its process (exit code 0)",
        "error: the code did not end within 0.3 seconds",
        "error: KeyboardInterrupt",
        "error: \\x1b[2J",
        "1",
    ]


def test_ctrl_c_ends_the_command_and_the_code(folder: Path, tmp_path: Path) -> None:
    started = tmp_path / "started"
    (folder / "executor.py").write_text(
        f"def execute(program):\n    open({str(started)!r}, 'w').close()\n    while True: pass\n"
    )
    process = start_process("execute", str(folder), "--allow-code")
    assert process.stdin is not None
    process.stdin.write(b"x\n")
    process.stdin.flush()
    while not started.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_the_traceback_of_an_executor_is_shown_on_request(folder: Path) -> None:
    (folder / "executor.py").write_text("def execute(program):\n    return 1 / 0\n")
    command = [COMMAND, "execute", str(folder), "--allow-code"]
    env = {**os.environ, "FEWPARSE_TRACEBACK": "1"}
    done = subprocess.run(command, input="x\n", capture_output=True, text=True, env=env, timeout=60)
    assert done.stdout == "error: division by zero\n"
    assert f'File "{folder / "executor.py"}", line 2, in execute' in done.stderr


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "ten", "1e999"])
def test_an_invalid_limit_is_a_usage_error(value: str, folder: Path) -> None:
    env = {"FEWPARSE_EXECUTION_SECONDS": value}
    ended = fewparse("execute", str(folder), "--allow-code", stdin=f"{ASK}\n", env=env)
    assert (ended.code, ended.out) == (2, "")
    assert "FEWPARSE_EXECUTION_SECONDS is" in ended.err


@pytest.mark.parametrize("value", ["1e300", "1e-300"])
def test_an_extreme_limit_is_no_defect(value: str, folder: Path) -> None:
    names = ("FEWPARSE_EXECUTION_SECONDS", "FEWPARSE_MAX_ANSWER_BYTES", "FEWPARSE_EXECUTION_MEMORY")
    for name in names:
        ended = fewparse("execute", str(folder), "--allow-code", stdin=f"{ASK}\n", env={name: value})
        assert ended.code in (0, 1)
