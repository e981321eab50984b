"""Compile a grammar in a child process with limits on memory and time, before this process compiles it.

Run as a module, it is that child: it reads a request from standard input and exits with 0 if the grammar compiles.
"""

import json
import subprocess
import sys

from fewparse.errors import ConstraintError, LimitExceeded

MEMORY_BYTES = 2 << 30
START_SECONDS = 20.0
"""Time to start the interpreter and import the engine, on a busy machine."""
MAX_MESSAGE = 300


def check_in_child(text: str, n_vocab: int, seconds: float) -> None:
    """Raise an error if a child process cannot compile a grammar in llguidance's notation.

    `n_vocab` is the number of tokens of the model, after which the special tokens follow.
    """
    request = json.dumps({"text": text, "n_vocab": n_vocab, "seconds": seconds})
    command = [sys.executable, "-m", "fewparse.constrain.isolation"]
    try:
        child = subprocess.run(
            command, input=request.encode(), capture_output=True, timeout=START_SECONDS + seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise LimitExceeded(f"a child process did not compile the grammar within {seconds} seconds") from None
    if child.returncode < 0:
        raise LimitExceeded(
            f"the grammar engine crashed in a child process (signal {-child.returncode})",
            "The grammar may be too large or nested too deeply.",
        )
    if child.returncode:
        reason = child.stderr.decode(errors="replace").strip().rpartition("\n")[2][:MAX_MESSAGE]
        raise ConstraintError(f"the grammar does not compile in a child process: {reason or 'no reason given'}")


def compile_request(request: str) -> None:
    """Compile the grammar of a request within the limits; raise an error if that fails."""
    from fewparse.constrain.engine import Limits, compile_text
    from fewparse.vocabulary import BYTES, Vocabulary

    fields = json.loads(request)
    padding = max(0, fields["n_vocab"] - len(BYTES))
    vocabulary = Vocabulary((*BYTES.tokens, *[b""] * padding)[: fields["n_vocab"]])
    limit_resources(fields["seconds"])
    compile_text(fields["text"], vocabulary, Limits(compile_seconds=fields["seconds"]))


def limit_resources(seconds: float) -> None:
    """Limit the memory and processor time of this process, where the operating system can."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(START_SECONDS + seconds), int(START_SECONDS + seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    try:
        compile_request(sys.stdin.read())
    except Exception as error:
        sys.exit(str(error) or type(error).__name__)
