"""Try a model file in a process of its own, so that a file that crashes llama.cpp is an error, not a crash.

`try_model` starts this module, which loads the file as a parse would, reads all weights and evaluates a text.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from fewparse.errors import CorruptModel, FewparseError, ModelError, ModelUnavailable
from fewparse.limits import MODEL_CHECK_BYTES, MODEL_CHECK_SECONDS
from fewparse.lm.evaluator import log_softmax
from fewparse.lm.lifetime import Lifetime
from fewparse.lm.llama_model import Llama
from fewparse.lm.local import usable_cores
from fewparse.lm.prefix_cache import PrefixCache
from fewparse.lm.usage import Usage

TEXT = "Fruits: apple, pear 12,\n\tZoë's 🍐 «%» <|im_end|> \x01\x7f" + "".join(map(chr, range(32, 256)))
MAX_SHOWN = 300


def try_model(path: Path) -> None:
    """Load a model in another process and evaluate a text; raise `CorruptModel` if that fails.

    Raises another `ModelError` if it takes longer than `MODEL_CHECK_SECONDS`.
    """
    package = str(Path(__file__).parents[2])
    paths = filter(None, (package, os.environ.get("PYTHONPATH")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "GGML_NO_BACKTRACE": "1"}
    command = [sys.executable, "-P", "-m", "fewparse.lm.trial", str(path)]
    limit = MODEL_CHECK_SECONDS.value
    try:
        ended = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        raise ModelError(
            f"{path} cannot be used: loading it and evaluating a text took more than {limit:g} seconds",
            MODEL_CHECK_SECONDS.hint,
        ) from None
    except OSError as error:
        raise ModelUnavailable(f"{path} cannot be checked: no process can be started ({error})") from None
    if ended.returncode == 0:
        return
    raise CorruptModel(
        f"{path} cannot be loaded as a GGUF model: {failure(ended)}",
        "The file may be damaged or of a kind that this version of llama.cpp does not support.",
    )


def failure(ended: subprocess.CompletedProcess[bytes]) -> str:
    """Return why the other process ended."""
    try:
        return str(json.loads(ended.stdout.decode())["error"])
    except (ValueError, KeyError, TypeError):
        pass
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    last = lines[-1][:MAX_SHOWN] if lines else "no reason given"
    if ended.returncode >= 0:
        return last
    try:
        name = signal.Signals(-ended.returncode).name
    except ValueError:
        name = f"signal {-ended.returncode}"
    return f"llama.cpp crashes ({name}: {last})"


def limit_memory(size: int) -> None:
    """Limit the memory of this process to that of a file of this size and `MODEL_CHECK_BYTES`; no core dumps."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wanted = size + int(MODEL_CHECK_BYTES.value)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))


def evaluate(path: Path) -> None:
    """Load a model with all checks of the library, and evaluate a text; raise `ModelError` if that fails."""
    llama = Llama(path, usable_cores(), Lifetime(str(path)), check_tensors=True)
    cache = PrefixCache(llama)
    usage = Usage()
    for special in (False, True):
        ids = (llama.begin_token, *llama.tokenize(TEXT, special, begin=special))[: llama.context_length]
        for row in cache.next_logits(ids[:-2] or ids[:1], [(), ids[-2:-1], ids[-1:]], usage):
            log_softmax(row)
    llama.close()


def main(path: Path) -> int:
    """Try a model; print what is wrong as JSON and return 1, or return 0."""
    limit_memory(path.stat().st_size)
    try:
        evaluate(path)
    except FewparseError as error:
        print(json.dumps({"error": error.message.removeprefix(f"{path} cannot be loaded as a GGUF model: ")}))
        return 1
    except MemoryError:
        print(json.dumps({"error": "there is not enough memory"}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
