"""Open a language model by its name on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING

from fewparse.errors import UnknownName, UsageError
from fewparse.lm import weights
from fewparse.lm.adapter import Adapter
from fewparse.lm.model import LanguageModel

if TYPE_CHECKING:
    from fewparse.lm.http.load import RemoteSettings

EMBEDDED = "embedded"
REMOTE = ("openai", "openai-chat")
KNOWN = (EMBEDDED, "gguf:PATH", "hf:PATH_OR_NAME", *(f"{kind}:NAME" for kind in REMOTE))


def open_model(
    name: str = EMBEDDED, progress: weights.Progress | None = None, remote: "RemoteSettings | None" = None
) -> LanguageModel:
    """The model of that name.

    `embedded` (fetched on first use), `gguf:PATH`, `hf:PATH_OR_NAME`, or a model behind a server: `openai:NAME`,
    `openai-chat:NAME`; `remote` says how to speak to that.
    """
    from fewparse.lm.embedded import EmbeddedModel

    kind, _, rest = name.partition(":")
    if name == EMBEDDED:
        return EmbeddedModel(weights.pull(progress=progress), name=f"{EMBEDDED}:{weights.SMOLLM2.name}")
    if kind == "gguf":
        if not rest:
            raise UsageError("gguf: needs a path", "For example --model gguf:/models/some-model.gguf")
        return EmbeddedModel(Path(rest).expanduser())
    if kind == "hf":
        from fewparse.lm.transformers import TransformersModel

        if not rest:
            raise UsageError(
                "hf: needs a folder, a GGUF file or a name", "For example --model hf:/models/some-model"
            )
        return TransformersModel(str(weights.pull(progress=progress)) if rest == EMBEDDED else rest, name=name)
    if kind in REMOTE:
        from fewparse.lm.http.load import RemoteSettings, open_remote

        return open_remote(kind, rest, remote or RemoteSettings())
    raise UnknownName("model", name, KNOWN)


def adapted(model: LanguageModel, adapter: Adapter | None) -> LanguageModel:
    """The model under an adapter, where there is one."""
    from fewparse.lm.embedded import EmbeddedModel

    if adapter is None:
        return model
    if not isinstance(model, EmbeddedModel):
        raise UsageError(
            f"{model.name} takes no adapter", "Adapters are for `embedded` and gguf:PATH; leave --adapter out."
        )
    return model.adapted(adapter)
