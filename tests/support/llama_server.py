"""llama.cpp's own server, in a process of its own that ends with its context, or with ours."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from socket import socket

SLOTS = 4
CONTEXT = 8192
THREADS = 2
SECONDS_TO_START = 120.0


@contextmanager
def llama_cpp_server(weights: Path, slots: int = SLOTS) -> Iterator[str]:
    """The address of a server with these weights, once it answers."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, str(weights), str(port), str(slots)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet) as process:
        try:
            wait_until_it_answers(process, port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def wait_until_it_answers(process: subprocess.Popen[bytes], port: int) -> None:
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < SECONDS_TO_START:
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", "/v1/models")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    raise AssertionError("llama.cpp's server does not answer")


def serve(weights: str, port: int, slots: int) -> None:
    """Serve until the other end of our standard input is gone."""
    import xllamacpp  # type: ignore[import-untyped]

    chosen = xllamacpp.CommonParams()
    chosen.model.path = weights
    chosen.hostnames = ["127.0.0.1"]
    chosen.port = port
    chosen.n_parallel = slots
    chosen.n_ctx = CONTEXT
    chosen.kv_unified = True
    chosen.warmup = False
    chosen.cpuparams.n_threads = chosen.cpuparams_batch.n_threads = THREADS
    serving = xllamacpp.Server(chosen)
    sys.stdin.read()
    del serving


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
