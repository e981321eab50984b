"""Locks between processes and threads."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fewparse.locks import Locked, file_lock

HOLDER = """
import os, sys
from pathlib import Path
from fewparse.locks import file_lock
with file_lock(Path(sys.argv[1])):
    if sys.argv[2] == "fork" and os.fork() == 0:
        os.close(1)
        sys.stdin.read()
        os._exit(0)
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("mode", ["alone", "fork"])
def test_a_lock_ends_with_its_process_even_if_a_child_lives_on(mode: str, tmp_path: Path) -> None:
    path, pipe = tmp_path / "lock", subprocess.PIPE
    command = [sys.executable, "-c", HOLDER, str(path), mode]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        with pytest.raises(Locked, match=f"process {process.pid}"), file_lock(path):
            pass
        process.kill()
        process.wait()
        with file_lock(path):
            pass


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    path, inside, most = tmp_path / "lock", list[int](), list[int]()

    def work() -> None:
        with file_lock(path, 60):
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_a_lock_is_released_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), file_lock(tmp_path / "lock"):
            raise ZeroDivisionError
    with pytest.raises(IsADirectoryError), file_lock(tmp_path):
        pass
    with file_lock(tmp_path / "lock"), pytest.raises(Locked, match=f"process {os.getpid()}"):
        file_lock(tmp_path / "lock").__enter__()
