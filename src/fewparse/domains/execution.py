"""Run functions of a domain in a process of their own, with limits on time, memory and the size of the answer.

Whatever such a function does, it cannot end, block or change the process that uses it. Its process is started when
the function is loaded, serves one call after another, and is started again after a call that ended it. A call
costs about 0.1 ms. Messages in both directions have a header (kind and length); the first one says what to load.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from fewparse.domains import worker
from fewparse.errors import ExecutionError
from fewparse.limits import ANSWER_BYTES, EXECUTION_MEMORY, EXECUTION_SECONDS
from fewparse.text import printable

MAX_SECONDS = 1_000_000.0

Reply = tuple[bytes, bytes] | None


class LoadError(Exception):
    """A function that cannot be loaded; `missing` if its module has no such function."""

    def __init__(self, reason: str, missing: bool = False, hint: str | None = None) -> None:
        super().__init__(reason)
        self.missing = missing
        self.hint = hint


class Process:
    """A process that has loaded a function; calling it raises `ExecutionError`, and `LoadError` at the start.

    `source` is the path of a Python file, or the name of a module.
    """

    def __init__(self, source: str, attribute: str) -> None:
        self.seconds = min(EXECUTION_SECONDS.value, MAX_SECONDS)
        self._max_bytes = int(ANSWER_BYTES.value)
        self.owner = os.getpid()
        self.usable = True
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-u", str(Path(worker.__file__).absolute())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for this process only, and ending it ends what it has started
            )
        except OSError as error:
            raise LoadError(f"no process can be started: {error}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin
        reader = threading.Thread(
            target=read_replies,
            args=(self._process.stdout, self._replies, max(self._max_bytes, 4 * worker.MAX_MESSAGE)),
            daemon=True,
        )
        reader.start()
        self._stop = weakref.finalize(self, stop, self._process, self.owner)
        settings = {
            "source": source,
            "attribute": attribute,
            "sys_path": [entry for entry in sys.path if isinstance(entry, str)],
            "seconds": self.seconds,
            "max_bytes": self._max_bytes,
            "max_memory": int(EXECUTION_MEMORY.value),
        }
        try:
            kind, reason = self._exchange(json.dumps(settings).encode())
        except ExecutionError as error:
            raise LoadError(error.message, hint=error.hint) from None
        if kind != worker.ANSWER:
            self.close()
            raise LoadError(reason.decode(errors="replace"), missing=not reason)

    def call(self, program: str) -> Any:
        """Return the answer of the function; raise `ExecutionError` if it has none within the limits."""
        try:
            request = program.encode()
        except UnicodeEncodeError:
            raise ExecutionError("the program is not Unicode text") from None
        kind, content = self._exchange(request)
        if kind == worker.ANSWER:
            with suppress(ValueError, RecursionError):
                return json.loads(content)
            raise ExecutionError("the answer is nested too deeply")
        raise ExecutionError(printable(content.decode(errors="replace")))

    def _exchange(self, request: bytes) -> tuple[bytes, bytes]:
        """Send a message and return the reply; without one within the time limit, end the process."""
        try:
            with suppress(BrokenPipeError):  # it has ended: its reply is None
                worker.send(self._requests, worker.ANSWER, request)
            reply = self._replies.get(timeout=self.seconds)
        except queue.Empty:
            self.close()
            reason = f"the code did not end within {self.seconds:g} seconds"
            raise ExecutionError(reason, EXECUTION_SECONDS.hint) from None
        except BaseException:  # such as Ctrl-C: the reply to this message must not be taken for the next one's
            self.close()
            raise
        if reply is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1)
            self.close()
            raise ExecutionError(f"the code ended its process ({ended(self._process)})")
        return reply

    def close(self) -> None:
        """End the process."""
        self.usable = False
        self._stop()


class IsolatedFunction:
    """A function of a domain as a callable; calls from several threads run one after another."""

    def __init__(self, source: str, attribute: str) -> None:
        self._source = source
        self._attribute = attribute
        self._lock = threading.Lock()
        self._process = Process(source, attribute)

    def __call__(self, program: str) -> Any:
        """Return the answer for a program; raise `ExecutionError`."""
        with self._lock:
            if not self._process.usable or self._process.owner != os.getpid():
                try:
                    self._process = Process(self._source, self._attribute)
                except LoadError as error:
                    raise ExecutionError(f"its code cannot be loaded: {error}", error.hint) from None
            return self._process.call(program)


def call_directly(function: Any, program: str) -> Any:
    """Call a function of this package in this process; raise `ExecutionError` as `IsolatedFunction` does."""
    try:
        return json.loads(worker.encode_answer(function(program), int(ANSWER_BYTES.value)))
    except Exception as error:
        raise ExecutionError(printable(worker.describe(error).decode())) from error


def read_replies(stream: IO[bytes], replies: "queue.SimpleQueue[Reply]", max_bytes: int) -> None:
    """Put the messages of a process into a queue, and None after the last one."""
    with stream:
        while (header := stream.read(worker.HEADER.size)) and len(header) == worker.HEADER.size:
            kind, length = worker.HEADER.unpack(header)
            if length > max_bytes or len(content := stream.read(length)) < length:
                break
            replies.put((kind, content))
    replies.put(None)


def stop(process: "subprocess.Popen[bytes]", owner: int) -> None:
    """End a process and all that it has started; nothing is done in a fork of the process that owns it."""
    if os.getpid() != owner:
        return
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)


def ended(process: "subprocess.Popen[bytes]") -> str:
    """Return how a process ended."""
    code = process.returncode
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
