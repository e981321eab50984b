"""Language models behind servers with an OpenAI-compatible HTTP interface, and the model kinds that open them."""

from fewparse.lm.load import ModelSettings, model_kind
from fewparse.lm.model import LanguageModel


@model_kind(argument="NAME", remote=True)
def open_completions(name: str, settings: ModelSettings) -> LanguageModel:
    """Open a model by the completions endpoint."""
    return _open("openai", name, settings)


@model_kind(argument="NAME", remote=True)
def open_chat(name: str, settings: ModelSettings) -> LanguageModel:
    """Open a model by the chat completions endpoint."""
    return _open("openai-chat", name, settings)


def _open(kind: str, name: str, settings: ModelSettings) -> LanguageModel:
    from fewparse.lm.http.load import RemoteSettings, open_remote

    return open_remote(kind, name, settings.remote or RemoteSettings())
