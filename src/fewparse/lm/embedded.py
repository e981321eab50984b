"""The embedded model: a GGUF file in this process, through llama.cpp."""

from pathlib import Path

from fewparse.errors import CorruptModel, ModelUnavailable
from fewparse.lm.llama import Llama
from fewparse.lm.local import LONGEST_CONTEXT, LocalModel, usable_cores
from fewparse.lm.prefix_cache import PrefixCache
from fewparse.vocabulary import Vocabulary

SEQUENCES = 256
ROOM_FOR_TAILS = 4096


class EmbeddedModel(LocalModel):
    """A GGUF model with one KV cache that every question shares."""

    def __init__(self, path: Path, name: str | None = None, threads: int | None = None) -> None:
        check_gguf(path)
        self._llama = Llama(path, LONGEST_CONTEXT, ROOM_FOR_TAILS, SEQUENCES, threads or usable_cores())
        super().__init__(
            name or f"gguf:{path}", read_vocabulary(self._llama), self._llama, PrefixCache(self._llama)
        )

    def close(self) -> None:
        """Give back the native memory."""
        self._llama.close()


def read_vocabulary(llama: Llama) -> Vocabulary:
    """The bytes of every token; none for markup."""
    ids = range(llama.n_vocab)
    return Vocabulary(
        [b"" if llama.is_control(i) else llama.piece(i) for i in ids], [i for i in ids if llama.is_end(i)]
    )


def check_gguf(file: Path) -> None:
    """Refuse what is not a GGUF file before the native library sees it."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(4)
    except OSError as error:
        raise ModelUnavailable(f"the model file {file} cannot be read: {error.strerror}") from None
    if magic != b"GGUF":
        raise CorruptModel(f"{file} is not a GGUF file", "For the bundled model: fewparse models pull --force")
