"""Faults of the file system at every operation of a program: the process is killed, or the disk is full.

A test runs an action once to count its operations that change files. Then it runs it again for each of them, with
a fault at that operation. A kill is an exception after which no operation has any effect, as after SIGKILL: there
is no clean-up and no flush.
"""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal
from unittest.mock import patch

from fewparse import replacement
from fewparse.errors import FewparseError
from support import campaign

Fault = Literal["kill", "half write", "disk full"]
FAULTS: tuple[Fault, ...] = ("kill", "half write", "disk full")
CHANGES = (
    *("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "link", "symlink", "truncate", "ftruncate"),
    *("fsync", "chmod", "utime"),
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Killed(BaseException):
    """The end of the simulated process."""


class Faults:
    """Counts the operations that change files; the one of number `at` fails."""

    def __init__(self, fault: Fault, at: int | None) -> None:
        self._fault = fault
        self._at = at
        self.count = 0
        self.dead = False

    def operation(self) -> bool:
        """Count an operation; return whether it fails after half of it. Raises the fault if it fails at once."""
        if self.dead:
            raise Killed
        self.count += 1
        if self.count - 1 != self._at:
            return False
        if self._fault == "half write":
            return True
        self.fail()
        return False

    def fail(self) -> None:
        """Raise the fault."""
        if self._fault == "disk full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.dead = True
        raise Killed

    def change(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that changes files, with faults."""

        def changed(*arguments: Any, **options: Any) -> Any:
            if self.operation():
                self.fail()
            return original(*arguments, **options)

        return changed

    def write(self, original: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
        """Return a function that writes to a file, with faults."""

        def written(file: Any, content: Any) -> int:
            if self.operation():
                original(file, bytes(content)[: len(content) // 2])
                self.fail()
            return original(file, content)

        return written

    def open(self, original: Callable[..., int]) -> Callable[..., int]:
        """Return `os.open` with faults; opening to read is not a change."""
        change = self.change(original)

        def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            return (change if flags & WRITING else original)(path, flags, *arguments, **options)

        return opened

    def open_file(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `open` with faults: files to be written are of a class that counts."""
        faults = self

        class File(io.FileIO):
            def write(self, content: Any, /) -> int:
                if faults.dead:  # what is left in a buffer is lost
                    return len(content)
                return faults.write(io.FileIO.write)(self, content)

        def opened(file: Any, mode: str = "r", buffering: int = -1, *arguments: Any, **options: Any) -> Any:
            if not set(mode) & set("wax+"):
                return original(file, mode, buffering, *arguments, **options)
            if self.operation():
                self.fail()
            raw = File(file, mode.replace("b", "").replace("t", ""))
            buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, *arguments, **options)

        return opened


@contextmanager
def faulty_files(fault: Fault, at: int | None = None) -> Iterator[Faults]:
    """Let operation number `at` on files fail, in all of Python; without a number, only count."""
    faults = Faults(fault, at)
    functions: dict[str, Any] = {name: faults.change(getattr(os, name)) for name in CHANGES}
    functions |= {"write": faults.write(os.write), "open": faults.open(os.open)}
    opened = faults.open_file(builtins.open)
    exchange = faults.change(replacement.exchange)
    with (
        patch.multiple(os, **functions),
        patch.object(builtins, "open", opened),
        patch.object(io, "open", opened),
        patch.object(replacement, "exchange", exchange),
    ):
        yield faults


def with_each_fault(
    fault: Fault, prepare: Callable[[], object], act: Callable[[], object], check: Callable[[bool], None]
) -> int:
    """Run an action with a fault at each of its operations; return the number of operations.

    Of many operations, only some are tried outside a campaign: other ones for each fault. `prepare` establishes
    the state before each run; `check` is called after each, with whether the action ended without an error.
    """
    prepare()
    with faulty_files(fault) as faults:
        act()
    check(True)
    step = 1 if campaign.is_running() else 1 + faults.count // 16
    for at in range(FAULTS.index(fault) % step, faults.count, step):
        prepare()
        done = False
        expected: type[BaseException] = FewparseError if fault == "disk full" else Killed
        with faulty_files(fault, at), suppress(expected):
            act()
            done = True
        check(done)
    return faults.count
