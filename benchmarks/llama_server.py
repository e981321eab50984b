"""A real llama.cpp server on this machine, with the embedded model's weights, in a process of its own."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen

from fewparse.lm.local import usable_cores
from fewparse.lm.weights import pull

PROGRAM = """
import sys, threading, xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.hostnames, settings.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
settings.n_parallel, settings.n_ctx, settings.kv_unified, settings.warmup = int(sys.argv[3]), 8192, True, False
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = int(sys.argv[4])
server = xllamacpp.Server(settings)
sys.stdin.read()
"""


@contextmanager
def llama_server(slots: int) -> Iterator[str]:
    """Its address, ending in /v1; it ends with this context, or with this process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", PROGRAM, str(pull()), str(port), str(slots), str(usable_cores())]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet) as process:
        try:
            url = f"http://127.0.0.1:{port}/v1"
            while not answers(f"{url}/models"):
                if process.poll() is not None:
                    raise RuntimeError("the server ended before it answered")
                time.sleep(0.1)
            yield url
        finally:
            process.kill()


def answers(address: str) -> bool:
    """Whether somebody is there."""
    try:
        with urlopen(address, timeout=5):
            return True
    except (URLError, OSError):
        return False
