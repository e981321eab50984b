"""The process that runs a function of a domain: a script that imports nothing of this package, to start quickly.

`execution.py` starts it and describes the messages. The function's standard input is empty, and what it prints
goes to standard error.
"""

import importlib
import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any

HEADER = struct.Struct(">cQ")
"""Of every message: its kind and the number of bytes that follow."""
ANSWER, FAILURE = b"A", b"F"
MAX_MESSAGE = 2000


def main() -> None:
    """Load the function that the first message names, then answer the others until the input ends."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    redirect_standard_streams()
    first = read_message(requests)
    assert first is not None
    settings = json.loads(first[1])
    limit_memory(settings["max_memory"])
    sys.path[:] = settings["sys_path"]
    seconds, max_bytes = settings["seconds"], settings["max_bytes"]
    function: Callable[[str], Any] | None = None
    with TimeLimit(seconds):
        try:
            function = load_function(settings["source"], settings["attribute"])
            send(replies, ANSWER, b"null")
        except BaseException as error:
            show_traceback()
            send(replies, FAILURE, describe_load_error(error))
    while function is not None and (message := read_message(requests)):
        with TimeLimit(seconds):
            try:
                kind, reply = ANSWER, encode_answer(function(message[1].decode()), max_bytes)
            except BaseException as error:
                show_traceback()
                kind, reply = FAILURE, describe(error)
            send(replies, kind, reply)


def redirect_standard_streams() -> None:
    """Replace standard input by an empty one, and standard output by standard error."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.dup2(null, 1)


def limit_memory(max_bytes: int) -> None:
    """Limit the memory of this process, where the operating system can."""
    with suppress(ImportError, AttributeError, ValueError, OverflowError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = max_bytes if hard == resource.RLIM_INFINITY else min(max_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


class TimeLimit:
    """Ends this process some time after the limit, in case its parent, which ends it at the limit, has died."""

    def __init__(self, seconds: float) -> None:
        self._seconds = 2 * seconds + 1

    def __enter__(self) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_error: object) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)


class NoSuchFunction(Exception):
    """The module has no function of that name."""


def load_function(source: str, attribute: str) -> Callable[[str], Any]:
    """Return a function of a Python file, or of a module if `source` is not a path ending in `.py`."""
    module = load_file(Path(source)) if source.endswith(".py") else importlib.import_module(source)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise NoSuchFunction
    return function  # type: ignore[no-any-return]


def load_file(path: Path) -> ModuleType:
    """Run a Python file as a module; its source is compiled, because a cached .pyc file may have other code."""
    module = ModuleType(f"fewparse_domain_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), module.__dict__)
    return module


def encode_answer(answer: Any, max_bytes: int) -> bytes:
    """Return an answer as JSON; raise `TypeError` or `ValueError` if it is not a JSON value or is too large."""
    if hasattr(type(answer), "__await__"):
        with suppress(Exception):
            answer.close()
        raise TypeError("the function is asynchronous: it must return the answer itself")
    too_large = f"the answer has more than {max_bytes:,} bytes"
    if isinstance(answer, str | bytes) and len(answer) > max_bytes:
        raise ValueError(too_large)
    json.dumps(answer, sort_keys=True)  # raises an error for keys of different types
    try:
        encoded = json.dumps(answer, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise ValueError("the answer is not Unicode text: it contains a lone surrogate") from None
    if len(encoded) > max_bytes:
        raise ValueError(too_large)
    return encoded


def show_traceback() -> None:
    """Print the traceback of the present error on standard error if the user has asked for tracebacks."""
    if os.environ.get("FEWPARSE_TRACEBACK"):
        with suppress(Exception):
            import traceback

            traceback.print_exc()


def describe(error: BaseException) -> bytes:
    """Return the message of an error, or its type if it has none; an error that ends a process shows both."""
    try:
        name, text = type(error).__name__, str(error)
        if not isinstance(error, Exception):
            text = f"{name}: {text}" if text else name
        return (text or name)[:MAX_MESSAGE].encode(errors="backslashreplace")
    except BaseException:
        return b"an error that has no text"


def describe_load_error(error: BaseException) -> bytes:
    """Return why a function could not be loaded; empty if its module was loaded but has no such function."""
    if isinstance(error, NoSuchFunction):
        return b""
    try:
        return repr(error)[:MAX_MESSAGE].encode(errors="backslashreplace")
    except BaseException:
        return describe(error)


def read_message(stream: IO[bytes]) -> tuple[bytes, bytes] | None:
    """Return the kind and the content of the next message; None at the end of the stream."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    kind, length = HEADER.unpack(header)
    content = stream.read(length)
    return (kind, content) if len(content) == length else None


def send(stream: IO[bytes], kind: bytes, content: bytes) -> None:
    """Write a message."""
    stream.write(HEADER.pack(kind, len(content)) + content)
    stream.flush()


if __name__ == "__main__":
    main()
