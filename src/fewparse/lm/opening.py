"""Open a language model by its name on the command line."""

from pathlib import Path

from fewparse.errors import UnknownName, UsageError
from fewparse.lm import weights
from fewparse.lm.model import LanguageModel

EMBEDDED = "embedded"


def open_model(name: str = EMBEDDED, progress: weights.Progress | None = None) -> LanguageModel:
    """The model of that name: `embedded` (fetched on first use) or `gguf:PATH`."""
    from fewparse.lm.embedded import EmbeddedModel

    kind, _, rest = name.partition(":")
    if name == EMBEDDED:
        return EmbeddedModel(weights.pull(progress=progress), name=f"{EMBEDDED}:{weights.SMOLLM2.name}")
    if kind == "gguf":
        if not rest:
            raise UsageError("gguf: needs a path", "For example --model gguf:/models/some-model.gguf")
        return EmbeddedModel(Path(rest).expanduser())
    raise UnknownName("model", name, [EMBEDDED, "gguf:PATH"])
