"""Records and reports survive what happens to files: kills, full disks, other evaluations, odd content."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse import Domain
from fewparse.errors import ResultsError
from fewparse.evaluate.records import Records
from fewparse.evaluate.report import check_report, write_report
from fewparse.evaluate.run import run_evaluation
from support.cli_runner import COMMAND, QUICK, fewparse, fewparse_process
from support.faults import FAULTS, Fault, with_each_fault
from support.lamp_domain import RemoteSystem, make_lamps, numbered

ITEMS = numbered(4)


@pytest.fixture(scope="module")
def lamps(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return make_lamps(tmp_path_factory.mktemp("domains") / "lamps")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out" / "records.jsonl"


def evaluate(domain: Domain, path: Path, items: int = 4, concurrency: int = 1) -> list[str]:
    """Evaluate some items; return the utterances that were not in the records."""
    system = RemoteSystem(concurrency)
    (result,) = run_evaluation(domain, [system], ITEMS[:items], "test", Records(path))
    assert [record.correct for record in result.records] == [(True,)] * items
    return system.utterances


def complete(path: Path) -> list[str]:
    """The utterances of the complete lines of a file."""
    return [json.loads(line)["utterance"] for line in path.read_bytes().split(b"\n")[:-1]]


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_operation_loses_no_complete_record(
    fault: Fault, concurrency: int, lamps: Domain, path: Path
) -> None:
    if concurrency > 1 and fault != "disk full":
        pytest.skip("a kill is simulated in one thread")
    path.parent.mkdir()
    evaluate(lamps, path, 2)
    two = path.read_bytes()
    half = two + two[: two.index(b"\n") // 2]

    def check(done: bool) -> None:
        content = path.read_bytes()
        assert content.startswith(two), "nothing that was complete is lost"
        before = complete(path)
        assert len(before) == 4 or not done
        assert sorted([*before, *evaluate(lamps, path)]) == ["0", "1", "2", "3"], "the next run does the rest"
        assert sorted(complete(path)) == ["0", "1", "2", "3"]
        assert path.read_bytes().endswith(b"\n")

    with_each_fault(fault, lambda: path.write_bytes(half), lambda: evaluate(lamps, path, 4, concurrency), check)


def test_every_cut_of_the_last_line_is_repaired_without_loss(lamps: Domain, path: Path) -> None:
    evaluate(lamps, path, 2)
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    for end in range(first, len(content)):
        path.write_bytes(content[:end])
        without_newline = end == len(content) - 1
        assert evaluate(lamps, path, 2) == ([] if without_newline else ["1"]), f"cut at {end}"
        assert complete(path) == ["0", "1"]


def test_zeros_at_the_end_that_a_power_failure_leaves_are_removed(lamps: Domain, path: Path) -> None:
    evaluate(lamps, path, 1)
    content = path.read_bytes()
    for rest in (bytes(100), content[:50] + bytes(100)):
        path.write_bytes(content + rest)
        assert evaluate(lamps, path, 1) == []
        assert path.read_bytes() == content


@pytest.mark.parametrize("text", ["my notes", "\n\n{", '{"name": "x"', "\xff\xfe", "x" * 50_000])
def test_another_file_without_a_last_newline_is_rejected_and_not_changed(
    text: str, lamps: Domain, path: Path
) -> None:
    path.parent.mkdir()
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ResultsError, match=r"records\.jsonl:1: not a record"):
        evaluate(lamps, path)
    assert path.read_bytes() == text.encode("latin-1")


def changed(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    """A change of the fields of a line."""

    def apply(line: bytes) -> bytes:
        fields = json.loads(line)
        change(fields)
        return json.dumps(fields).encode()

    return apply


def with_field(name: str, value: object) -> Callable[[bytes], bytes]:
    return changed(lambda fields: fields.update({name: value}))


def with_usage(name: str, value: object) -> Callable[[bytes], bytes]:
    return changed(lambda fields: fields["usage"].update({name: value}))  # type: ignore[attr-defined]


def with_text(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def apply(line: bytes) -> bytes:
        assert old in line
        return line.replace(old, new, 1)

    return apply


LINES = {
    "no usage": with_field("usage", None),
    "usage is a list": with_field("usage", []),
    "usage of texts": with_usage("requests", "3"),
    "a negative count": with_usage("requests", -1),
    "a truth value as a count": with_usage("requests", True),
    "an unknown counter": with_usage("other", 1),
    "a huge count": with_usage("requests", 10**400),
    "a count that cannot be read": with_text(b'"requests": ', b'"requests": ' + b"9" * 5000),
    "no time": with_field("seconds", None),
    "not a time": with_text(b'"seconds": ', b'"seconds": NaN, "x": '),
    "NaN": with_field("seconds", float("nan")),
    "infinity": with_field("prompt_seconds", float("inf")),
    "correct is not a list": with_field("correct", True),
    "correct is a text": with_field("correct", "yes"),
    "correct has texts": with_field("correct", ["yes"]),
    "lists of different lengths": with_field("outputs", ["a", "b", "c"]),
    "outputs has numbers": with_field("outputs", [1]),
    "a nested list": with_text(b'"correct": [', b'"correct": [' + b"[" * 100_000),
    "deep objects": with_text(b'"usage": ', b'"usage": ' + b'{"a":' * 100_000),
    "a lone surrogate": with_field("outputs", ["\ud800"]),
    "the key is a list": with_field("settings", []),
    "the key is an object": with_field("item", {}),
    "no system": changed(lambda fields: fields.pop("system")),
    "an unknown field": with_field("extra", 1),
    "not UTF-8": with_text(b'"outputs": ["', b'"outputs": ["\xff'),
    "empty": lambda line: b"",
    "zeros": lambda line: bytes(len(line)),
}


@pytest.mark.parametrize("change", LINES.values(), ids=LINES)
def test_a_line_with_wrong_values_is_an_error_with_its_number(
    change: Callable[[bytes], bytes], lamps: Domain, path: Path
) -> None:
    evaluate(lamps, path, 2)
    first, second, end = path.read_bytes().split(b"\n")
    content = b"\n".join([first, change(second), end])
    path.write_bytes(content)
    with pytest.raises(ResultsError, match=r"records\.jsonl:2: not a record of an evaluation"):
        Records(path)
    assert path.read_bytes() == content


HOLDER = """
import sys
from pathlib import Path
from fewparse.evaluate.records import Records
with Records(Path(sys.argv[1])).locked():
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_second_evaluation_is_an_error_until_the_first_one_ends_or_is_killed(lamps: Domain, path: Path) -> None:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(ResultsError, match=f"another evaluation writes .* process {process.pid}"):
            evaluate(lamps, path)
        assert path.read_bytes() == b""
        process.kill()
    assert evaluate(lamps, path) == ["0", "1", "2", "3"]


def test_a_second_evaluation_in_the_same_process_is_an_error_too(lamps: Domain, path: Path) -> None:
    with Records(path).locked(), pytest.raises(ResultsError, match=f"process {os.getpid()}"):
        evaluate(lamps, path)
    assert len(evaluate(lamps, path)) == 4


def test_records_that_another_evaluation_added_meanwhile_are_used(lamps: Domain, path: Path) -> None:
    early = Records(path)
    evaluate(lamps, path, 3)
    system = RemoteSystem()
    run_evaluation(lamps, [system], ITEMS, "test", early)
    assert system.utterances == ["3"]
    assert complete(path) == ["0", "1", "2", "3"]


def test_texts_that_are_not_unicode_are_written_as_valid_json(lamps: Domain, path: Path) -> None:
    (item,) = numbered(1)
    odd = type(item)("0\ud800\u2028\x1b", item.program)
    run_evaluation(lamps, [RemoteSystem()], [odd], "test", Records(path))
    assert complete(path) == ["0\ufffd\u2028\x1b"]
    assert b"\x1b" not in path.read_bytes()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_report_is_the_old_one_or_the_new_one(fault: Fault, tmp_path: Path) -> None:
    files = {"report.json": ("{}\n", '{"new": 1}\n'), "report.md": ("old", "new")}

    def check(done: bool) -> None:
        for name, versions in files.items():
            assert (tmp_path / name).read_text() in (versions[1:] if done else versions)
        write_report(tmp_path, "{}", "again")
        assert (tmp_path / "report.md").read_text() == "again"

    with_each_fault(
        fault,
        lambda: write_report(tmp_path, *(old for old, _ in files.values())),
        lambda: write_report(tmp_path, *(new for _, new in files.values())),
        check,
    )


@pytest.mark.parametrize("name", ["report.json", "report.md"])
def test_a_folder_in_the_place_of_a_report_is_an_error_before_the_evaluation(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ResultsError, match=f"{name}: cannot be written: it is a folder"):
        check_report(tmp_path)
    ended = fewparse("eval", "calendar", "--limit", "1", *QUICK, "--out", str(tmp_path))
    assert ended.code == 1
    assert f"{name}: cannot be written: it is a folder" in ended.err
    assert (tmp_path / "records.jsonl").read_text() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_an_error_and_the_report_is_written(tmp_path: Path) -> None:
    arguments = ["eval", "calendar", "--limit", "1", *QUICK, "--out", str(tmp_path)]
    with open("/dev/full", "w") as full:
        ended = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert ended.returncode == 1
    assert os.strerror(errno.ENOSPC) in ended.stderr
    assert "Traceback" not in ended.stderr
    assert json.loads((tmp_path / "report.json").read_text())["rows"]


@pytest.mark.parametrize("out", ["{file}/out", "{file}", "/proc/none", "{folder}/" + "x" * 300, "{pipe}"])
def test_a_folder_that_cannot_be_written_is_an_error_message(out: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "piped").mkdir()
    os.mkfifo(tmp_path / "piped" / "records.jsonl")
    chosen = out.format(file=tmp_path / "file", folder=tmp_path, pipe=tmp_path / "piped")
    ended = fewparse("eval", "calendar", "--limit", "1", *QUICK, "--out", chosen)
    assert ended.code in (1, 2), ended.err
    assert "error: " in ended.err


def test_a_file_size_limit_in_an_evaluation_is_an_error_and_the_next_run_resumes(tmp_path: Path) -> None:
    arguments = ["eval", "calendar", "--limit", "2", *QUICK, "--out", str(tmp_path)]
    limited = "import resource, signal, sys, os; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700)); os.execv(sys.argv[1], sys.argv[1:])"
    ended = subprocess.run(
        [sys.executable, "-c", limited, COMMAND, *arguments], capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 1, ended.stderr
    assert "records.jsonl: cannot be written: File too large" in ended.stderr
    assert "the same command resumes the run" in ended.stderr
    assert fewparse_process(*arguments).code == 0
    assert len(complete(tmp_path / "records.jsonl")) == 2 * len(
        json.loads((tmp_path / "report.json").read_text())["rows"]
    )
