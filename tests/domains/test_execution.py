"""Executors that hang, crash, print or return anything: an answer or an `ExecutionError`."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fewparse import load_domain
from fewparse.domains.domain import Domain
from fewparse.errors import DomainError, ExecutionError
from support.domain_files import write_domain

Make = Callable[[str], Domain]
EXAMPLES = [{"utterance": "u", "program": "p"}]
SETTINGS = 'name = "hostile"\nexecutor = "executor.py:execute"\n[constraint]\nkind = "trie"\n'


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A function that makes a domain with an executor; the program `fine` has the answer `fine`."""

    def with_executor(source: str) -> Domain:
        return load_domain(write_domain(tmp_path / "domain", SETTINGS, EXAMPLES, {"executor.py": source}))

    return with_executor


def body(*lines: str) -> str:
    """Return an executor with these lines for every program but `fine`."""
    inner = "".join(f"    {line}\n" for line in lines)
    return f'import os, sys\ndef execute(program):\n    if program == "fine":\n        return "fine"\n{inner}'


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_EXECUTION_SECONDS", "0.5")


FAILURES = {
    "SystemExit": (["sys.exit(3)"], "SystemExit: 3"),
    "KeyboardInterrupt": (["raise KeyboardInterrupt"], "KeyboardInterrupt"),
    "GeneratorExit": (["raise GeneratorExit('g')"], "GeneratorExit: g"),
    "end of the process": (["os._exit(7)"], r"the code ended its process \(exit code 7\)"),
    "fatal signal": (["import signal; os.kill(os.getpid(), signal.SIGSEGV)"], r"process \(SIGSEGV\)"),
    "recursion": (["return execute(program)"], "maximum recursion depth exceeded"),
    "an empty message": (["raise ValueError"], "ValueError"),
    "a message with controls": (["raise ValueError('\\x1b[2J\\ud800')"], r"\\x1b\[2J\\ud800"),
    "a long message": (["raise ValueError('x' * 10**6)"], "^x{2000}$"),
    "a message that raises": (
        ["class E(Exception):", "    def __str__(self): raise SystemExit", "raise E"],
        "an error that has no text",
    ),
    "NaN": (["return [float('nan')]"], "Out of range float values"),
    "a set": (["return {1}"], "type set is not JSON serializable"),
    "bytes": (["return b'x'"], "type bytes is not JSON serializable"),
    "a generator": (["return (x for x in 'ab')"], "type generator is not JSON serializable"),
    "a cycle": (["cycle = []", "cycle.append(cycle)", "return cycle"], "Circular reference detected"),
    "deep nesting": (["deep = []", "for _ in range(10**5): deep = [deep]", "return deep"], "recursion"),
    "keys of different types": (["return {1: 2, 'a': 3}"], "not supported between"),
    "a huge number": (["return 10**10000"], "Exceeds the limit"),
    "a lone surrogate": (["return ['\\ud800']"], "the answer is not Unicode text"),
    "an object": (["return object()"], "type object is not JSON serializable"),
    "an object whose text raises": (
        ["class A:", "    def __repr__(self): os._exit(1)", "return A()"],
        "type A is not JSON serializable",
    ),
    "a coroutine": (["async def later(): pass", "return later()"], "the function is asynchronous"),
    "a large text": (["return 'x' * 20_000_000"], "the answer has more than 10,000,000 bytes"),
    "a large list": (["return [0] * 8_000_000"], "the answer has more than 10,000,000 bytes"),
    "closed streams": (["os.closerange(0, 100)", "return 1"], "the code ended its process"),
}


@pytest.mark.parametrize(("lines", "message"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_an_execution_error_and_the_next_call_works(
    lines: list[str], message: str, make: Make
) -> None:
    domain = make(body(*lines))
    with pytest.raises(ExecutionError, match=message):
        domain.execute("p")
    assert domain.execute("fine") == "fine"


@pytest.mark.parametrize(
    "lines",
    [
        ["while True: pass"],
        ["while True:", "    try:", "        while True: pass", "    except BaseException: pass"],
        ["import time; time.sleep(1000)"],
        ["return (10**8) ** (10**8)"],
        ["import re; return re.match('(a+)+$', 'a' * 60 + 'b')"],
        ["import threading; threading.Event().wait()"],
        ["import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"],
        ["class E(Exception):", "    def __str__(self):", "        while True: pass", "raise E"],
        ["import subprocess; subprocess.run(['sleep', '1000'])"],
    ],
    ids=["loop", "catches", "sleep", "arithmetic", "regex", "wait", "ignored signal", "message", "child"],
)
@pytest.mark.usefixtures("short_limit")
def test_an_endless_execution_is_ended_at_the_limit(lines: list[str], make: Make) -> None:
    domain = make(body(*lines))
    start = time.monotonic()
    with pytest.raises(ExecutionError, match=r"did not end within 0\.5 seconds") as raised:
        domain.execute("p")
    assert time.monotonic() - start < 20
    assert "FEWPARSE_EXECUTION_SECONDS" in (raised.value.hint or "")
    assert domain.execute("fine") == "fine"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not limit memory")
def test_memory_is_limited(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_EXECUTION_MEMORY", "300e6")
    domain = make(body("return len(bytearray(10**9))"))
    with pytest.raises(ExecutionError, match="MemoryError"):
        domain.execute("p")


def test_the_limit_of_the_answer_can_be_raised(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_MAX_ANSWER_BYTES", "30e6")
    assert len(make(body("return 'x' * 20_000_000")).execute("p")) == 20_000_000


LOADING = {
    "exit": ("raise SystemExit(2)", r"SystemExit\(2\)"),
    "end of the process": ("import os; os._exit(5)", r"the code ended its process \(exit code 5\)"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "hostile text": (
        "class E(Exception):\n    __repr__ = __str__ = None\nraise E",
        "an error that has no text",
    ),
    "NUL": ("x = '\0'", "(SyntaxError|ValueError)"),
    "class": ("class execute:\n    pass", None),
    "wrong arguments": ("def execute(): return 1", None),
    "asynchronous": ("async def execute(program): return 1", None),
}


@pytest.mark.parametrize(("source", "reason"), LOADING.values(), ids=LOADING)
def test_code_that_cannot_be_used_is_an_error(source: str, reason: str | None, make: Make) -> None:
    domain = make(source)
    if reason is None:
        domain.check()
        with pytest.raises(ExecutionError):
            domain.execute("p")
    else:
        with pytest.raises(DomainError, match=f"the executor executor.py cannot be loaded: {reason}"):
            domain.check()


@pytest.mark.usefixtures("short_limit")
def test_code_that_never_finishes_loading_is_an_error(make: Make) -> None:
    with pytest.raises(DomainError, match=r"cannot be loaded: the code did not end within 0\.5 seconds"):
        make("while True: pass").check()


@pytest.mark.usefixtures("short_limit")
def test_code_that_cannot_be_loaded_again_is_an_execution_error(make: Make, tmp_path: Path) -> None:
    domain = make(body("os._exit(1)"))
    domain.check()
    (tmp_path / "domain" / "executor.py").write_text("1 / 0")
    with pytest.raises(ExecutionError, match="ended its process"):
        domain.execute("p")
    with pytest.raises(ExecutionError, match="its code cannot be loaded: ZeroDivisionError"):
        domain.execute("p")


def test_an_answer_is_the_json_value_with_the_order_of_its_keys(make: Make) -> None:
    answer = make(body("return {'b': (1, 2.5, None), 'a': 'é\\u2028\\x00', 'c': {}}")).execute("p")
    assert answer == {"b": [1, 2.5, None], "a": "é\u2028\x00", "c": {}}
    assert list(answer) == ["b", "a", "c"]


def test_a_program_is_passed_unchanged(make: Make) -> None:
    domain = make(body("return program"))
    for program in ("", "é 😀", "a\nb\r\n\x00", "x" * 1_000_000):
        assert domain.execute(program) == program
    with pytest.raises(ExecutionError, match="the program is not Unicode text"):
        domain.execute("\ud800")


def test_an_executor_keeps_its_state_between_calls(make: Make) -> None:
    domain = make("calls = []\ndef execute(program):\n    calls.append(program)\n    return calls\n")
    domain.execute("a")
    assert domain.execute("b") == ["a", "b"]


def test_an_executor_cannot_change_the_process_that_uses_it(make: Make) -> None:
    lines = ["os.chdir('/')", "os.environ['CHANGED'] = '1'", "sys.path.clear()", "sys.setrecursionlimit(50)"]
    before = (Path.cwd(), list(sys.path), sys.getrecursionlimit())
    make(body(*lines, "return 1")).execute("p")
    assert (Path.cwd(), sys.path, sys.getrecursionlimit()) == before
    assert "CHANGED" not in os.environ


def test_calls_from_several_threads_get_their_own_answers(make: Make) -> None:
    domain = make(body("return program * 2"))
    domain.check()
    wrong: list[str] = []

    def call(name: str) -> None:
        for i in range(50):
            if domain.execute(f"{name}{i}") != f"{name}{i}" * 2:
                wrong.append(name)

    threads = [threading.Thread(target=call, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_folder_may_use_modules_and_files_of_its_user(make: Make, tmp_path: Path) -> None:
    domain = make(
        body("import numpy", "return open(os.path.join(os.path.dirname(__file__), 'domain.toml')).read()")
    )
    assert domain.execute("p") == SETTINGS


def test_data_classes_work_in_an_executor(make: Make) -> None:
    source = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Point:\n    x: int\ndef execute(program): return Point(3).x\n"
    )
    assert make(source).execute("p") == 3


SCRIPT = """
import sys
from fewparse import load_domain
domain = load_domain(sys.argv[1])
answer = domain.execute("p")
print(answer)
"""


def run_script(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=60)


def test_what_an_executor_prints_goes_to_standard_error_and_its_input_is_empty(make: Make) -> None:
    lines = [
        "print('printed')",
        "os.write(1, b'written\\n')",
        "os.system('echo called')",
        "return sys.stdin.read()",
    ]
    done = run_script(SCRIPT, make(body(*lines)).folder)
    assert (done.returncode, done.stdout) == (0, "\n")
    assert set(done.stderr.split()) == {"printed", "written", "called"}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_no_process_is_left_after_the_end(make: Make) -> None:
    lines = ["import subprocess", "subprocess.Popen(['sleep', '1000'])", "return os.getpgid(0)"]
    done = run_script(SCRIPT, make(body(*lines)).folder)
    assert running_in_group(int(done.stdout)) == 0


def running_in_group(group: int) -> int:
    """Return how many processes of a group run; one that has ended may wait for its parent."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group = path.read_text().rpartition(")")[2].split()[:3]
            count += int(its_group) == group and state != "Z"
    return count


def test_a_process_is_shared_by_the_variants_of_a_domain(make: Make) -> None:
    domain = make(body("return os.getpid()"))
    assert domain.execute("p") == domain.for_target("program").execute("p")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_busy_process_ends_if_the_process_that_uses_it_is_killed(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEWPARSE_EXECUTION_SECONDS", "0.3")
    note = tmp_path / "group"
    lines = [f"open({str(note)!r}, 'w').write(str(os.getpgid(0)))", "while True: pass"]
    killed = SCRIPT.replace(
        "answer =", "import os, threading; threading.Timer(0.1, os._exit, (9,)).start(); answer ="
    )
    assert run_script(killed, make(body(*lines)).folder).returncode == 9
    deadline = time.monotonic() + 20
    while running_in_group(int(note.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running_in_group(int(note.read_text())) == 0
