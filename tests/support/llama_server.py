"""llama.cpp's server in a subprocess, which ends with its context or with the parent process."""

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
START_TIMEOUT = 120.0


@contextmanager
def llama_cpp_server(weights: Path, slots: int = SLOTS) -> Iterator[str]:
    """Yield the URL of a server with these weights, once it is ready."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, str(weights), str(port), str(slots)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet) as process:
        try:
            wait_until_ready(process, port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    start = time.monotonic()
    while process.poll() is None and time.monotonic() - start < START_TIMEOUT:
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
    raise AssertionError("llama.cpp's server does not respond")


def serve(weights: str, port: int, slots: int) -> None:
    """Serve until standard input is closed."""
    import xllamacpp  # type: ignore[import-untyped]

    from fewparse.lm.local import usable_cores

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = slots
    params.n_ctx = CONTEXT
    params.kv_unified = True
    params.warmup = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = usable_cores()
    serving = xllamacpp.Server(params)
    sys.stdin.read()
    del serving


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
