"""The lifetime of local models: a closed model or one of another process is an error, never a crash or a hang."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fewparse.errors import FewparseError, ModelError
from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.lifetime import Lifetime, with_stack
from fewparse.lm.local import LocalModel
from fewparse.lm.model import Sampling, Token
from fewparse.lm.transformers import TransformersModel
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from support import tiny_checkpoints as tiny
from support.adapters import write_adapter
from support.extras import need_torch
from support.prompts import plain_prompt
from support.tiny_model import write_tiny_model

STOP = b"\n"
PROMPT = plain_prompt("Fruits: apple,")
TIMEOUT = 60
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture(scope="module")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture
def tiny_model(tiny_gguf: Path) -> Iterator[EmbeddedModel]:
    opened = EmbeddedModel(tiny_gguf)
    yield opened
    opened.close()


@pytest.fixture(params=["gguf", "hf"])
def local(request: pytest.FixtureRequest, tiny_gguf: Path, tmp_path: Path) -> Iterator[LocalModel]:
    """A small model of each kind that runs in this process."""
    if request.param == "hf":
        need_torch()
    opened: LocalModel = (
        EmbeddedModel(tiny_gguf)
        if request.param == "gguf"
        else TransformersModel(str(tiny.save(tmp_path / "folder", "llama", tiny.byte_level())))
    )
    yield opened
    opened.close()


def query(model: LocalModel) -> None:
    model.next_tokens(PROMPT, [()], 1, STOP, Usage())


def test_every_query_of_a_closed_model_is_an_error(local: LocalModel) -> None:
    query(local)
    word = (Token(b"a", 1),)
    local.close()
    sampling = Sampling(n=1, temperature=0.5, max_tokens=3)
    for use in (
        lambda: query(local),
        lambda: local.sample(PROMPT, [()], sampling, Usage()),
        lambda: local.score(PROMPT, [()], [word], Usage()),
        lambda: local.evaluator.next_logits((1, 2), [()], Usage()),
        lambda: list(local.evaluator.logits_along((1, 2), [((), (3,))], Usage())),
    ):
        with pytest.raises(ModelError, match="is closed"):
            use()
    local.close()


def test_a_closed_gguf_model_neither_tokenizes_nor_takes_adapters(
    tiny_model: EmbeddedModel, tmp_path: Path
) -> None:
    tiny_model.close()
    with pytest.raises(ModelError, match="is closed") as caught:
        tiny_model.tokenize("a text")
    assert tiny_model.name in caught.value.message
    with pytest.raises(ModelError, match="is closed"):
        tiny_model.with_adapter(read_adapter(write_adapter(tmp_path / "some.gguf")))
    assert len(tiny_model.vocabulary) > 0


def test_a_model_with_an_adapter_is_closed_with_its_base(tmp_path: Path, model: EmbeddedModel) -> None:
    base = EmbeddedModel(model.path)
    adapted = base.with_adapter(read_adapter(write_adapter(tmp_path / "some.gguf")))
    query(adapted)
    base.close()
    with pytest.raises(ModelError, match="is closed"):
        query(adapted)


def test_a_parse_after_close_is_an_error(tiny_model: EmbeddedModel) -> None:
    parser = Parser.from_domain("starter", tiny_model, examples=0, decoder="greedy")
    tiny_model.close()
    with pytest.raises(ModelError, match="is closed"):
        parser.parse("turn on the lamp")


def test_a_suspended_generator_ends_with_an_error_after_close(tiny_model: EmbeddedModel) -> None:
    spans = [((i,), tuple(range(100, 190))) for i in range(3, 8)]  # several batches
    rows = tiny_model.evaluator.logits_along((1, 2), spans, Usage())
    next(rows)
    tiny_model.close()
    with pytest.raises(ModelError, match="is closed"):
        list(rows)


def test_close_waits_for_the_query_under_way(local: LocalModel) -> None:
    """Several threads query while others close; each query returns or raises that the model is closed."""
    errors: list[BaseException] = []
    started = threading.Semaphore(0)

    def work() -> None:
        try:
            for i in range(1000):
                local.sample(
                    plain_prompt(f"Number {i}:"), [()], Sampling(n=2, temperature=1.0, max_tokens=20), Usage()
                )
                started.release()
        except ModelError as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in workers:
        assert started.acquire(timeout=TIMEOUT)
    closers = [threading.Thread(target=local.close) for _ in range(2)]
    for thread in (*closers, *workers):
        if thread in closers:
            thread.start()
    for thread in (*closers, *workers):
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    assert [str(error).partition("\n")[0] for error in errors] == [f"{local.name} is closed"] * 3


def test_a_guide_may_close_the_model_in_the_middle_of_a_sample(tiny_model: EmbeddedModel) -> None:
    class Closing:
        def advance(self, piece: bytes) -> "Closing":
            tiny_model.close()
            return self

    sampling = Sampling(n=1, temperature=1.0, max_tokens=9, stop=b"\0")
    with pytest.raises(ModelError, match="is closed"):
        tiny_model.sample(PROMPT, [()], sampling, Usage(), [Closing()])


def test_a_query_that_fails_does_not_use_up_the_cache(
    tiny_model: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tiny_model.next_tokens(PROMPT, [()], 3, STOP, Usage())
    decode = tiny_model._llama.decode
    tokens = [(Token(b"", i),) for i in range(3, 90)]
    for _ in range(5):
        monkeypatch.setattr(tiny_model._llama, "decode", failing)
        with pytest.raises(ModelError, match="a fault"):
            tiny_model.next_tokens(PROMPT, tokens, 1, STOP, Usage())
        monkeypatch.setattr(tiny_model._llama, "decode", decode)
    assert len(tiny_model.next_tokens(PROMPT, tokens, 1, STOP, Usage())) == len(tokens)
    assert tiny_model.next_tokens(PROMPT, [()], 3, STOP, Usage()) == before


def failing(*_arguments: object) -> None:
    raise ModelError("a fault")


def in_fork(work: Callable[[], object]) -> str:
    """Run work in a forked process; return the first line of the error it raises."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # threads and fork: that is what is tested
        pid = os.fork()
    if pid == 0:
        message = "no error"
        try:
            work()
        except FewparseError as error:
            message = f"{error.message} | {error.hint}"
        except BaseException as error:
            message = repr(error)
        os.write(writer, message.encode())
        os._exit(0)
    os.close(writer)
    deadline = time.monotonic() + TIMEOUT
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            pytest.fail("the forked process hangs")
        time.sleep(0.02)
    with os.fdopen(reader) as file:
        return file.read()


@needs_fork
def test_a_forked_process_cannot_use_the_model_and_is_told_what_to_do(local: LocalModel) -> None:
    query(local)
    message = in_fork(lambda: query(local))
    assert message.startswith(f"{local.name} was loaded before this process was forked | ")
    assert "spawn" in message
    assert in_fork(local.close) == "no error"
    query(local)


@needs_fork
def test_a_process_forked_during_a_query_does_not_hang(tiny_model: EmbeddedModel) -> None:
    parser = Parser.from_domain("starter", tiny_model, examples=0, decoder="greedy")
    inside, leave = threading.Event(), threading.Event()

    class Waiting:
        def advance(self, piece: bytes) -> None:
            inside.set()
            leave.wait(TIMEOUT)

    sampling = Sampling(n=1, temperature=1.0, max_tokens=9, stop=b"\0")
    slow = threading.Thread(target=tiny_model.sample, args=(PROMPT, [()], sampling, Usage(), [Waiting()]))
    slow.start()
    try:
        assert inside.wait(TIMEOUT)
        assert parser._slots.acquire(timeout=1)  # as a parse under way does
        assert "was forked" in in_fork(lambda: query(tiny_model))
        assert "was forked" in in_fork(lambda: parser.parse("turn on the lamp"))
    finally:
        leave.set()
        slow.join(TIMEOUT)


@needs_fork
def test_a_forked_process_cannot_load_another_model(tiny_model: EmbeddedModel) -> None:
    query(tiny_model)
    assert "llama.cpp was already used before" in in_fork(lambda: EmbeddedModel(tiny_model.path).close())


def load_and_query(path: str) -> int:
    """Use a model in a process started by multiprocessing; return the number of next tokens."""
    model = EmbeddedModel(Path(path))
    return len(model.next_tokens(PROMPT, [()], 3, STOP, Usage())[0].best)


def test_a_spawned_process_can_load_a_model(tiny_model: EmbeddedModel) -> None:
    query(tiny_model)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(load_and_query, [str(tiny_model.path)]).get(TIMEOUT) == 3


EXITS = """
import atexit, sys, threading
from pathlib import Path
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.model import Sampling
from fewparse.lm.usage import Usage
from fewparse.prompt import Part, Prompt

model = EmbeddedModel(Path(sys.argv[1]))
prompt = Prompt((Part("a", False),))

class Owner:
    def __del__(self):
        model.close()

def work():
    while True:
        model.sample(prompt, [()], Sampling(n=3, temperature=1.0, max_tokens=40, stop=b"\\0"), Usage())

owner = Owner()
owner.itself = owner
if sys.argv[2] == "atexit":
    atexit.register(model.close)
thread = threading.Thread(target=work, daemon=True)
thread.start()
thread.join(0.3)
"""


@pytest.mark.parametrize("when", ["atexit", "del"])
def test_a_process_that_ends_with_a_query_under_way_neither_crashes_nor_hangs(tiny_gguf: Path, when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXITS, str(tiny_gguf), when], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == 0, done.stderr


def test_free_is_called_once_and_after_the_calls_under_way() -> None:
    lifetime = Lifetime("some model")
    freed: list[int] = []
    entered, leave = threading.Event(), threading.Event()

    def call() -> None:
        with lifetime:
            entered.set()
            leave.wait(TIMEOUT)
            freed.append(0)

    caller = threading.Thread(target=call)
    caller.start()
    entered.wait(TIMEOUT)
    closers = [threading.Thread(target=lifetime.close, args=(lambda: freed.append(1),)) for _ in range(3)]
    for closer in closers:
        closer.start()
    leave.set()
    for thread in (caller, *closers):
        thread.join(TIMEOUT)
    assert freed == [0, 1]


def test_a_deep_stack_returns_results_and_errors_and_is_not_kept() -> None:
    usual = threading.stack_size()
    assert with_stack(lambda: 7, 1 << 24) == 7
    with pytest.raises(ModelError, match="a fault"):
        with_stack(failing, 1 << 24)
    assert threading.stack_size() == usual
