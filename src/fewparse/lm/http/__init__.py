"""Language models behind servers with an OpenAI-compatible HTTP interface, and the model kinds that open them."""

from fewparse.lm.load import ModelSettings, model_kind
from fewparse.lm.model import LanguageModel


def identify_completions(name: str, settings: ModelSettings) -> str | None:
    """Return the identity of a model: its kind, name and server; None if only the server knows its name."""
    from fewparse.lm.http.client import public_url, split_url
    from fewparse.lm.http.load import RemoteSettings
    from fewparse.lm.http.remote import full_name

    url = (settings.remote or RemoteSettings()).url
    return full_name("openai", name, public_url(split_url(url))) if name else None


@model_kind(argument="NAME", remote=True, identify=identify_completions)
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
