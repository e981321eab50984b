"""What a server reports about itself and a model; not every server does, so each value is optional."""

from typing import NamedTuple

from fewparse.errors import ServerError, ServerRejected
from fewparse.lm.http.client import HttpClient
from fewparse.lm.http.schema import GenerationSettings, ListedModel, ModelMeta, Props, parse_models, parse_props

MAX_IGNORED = 5


class Reported(NamedTuple):
    """The reported values, None if missing or not valid; `ignored` says what was not valid."""

    slots: int | None
    context_length: int | None
    vocabulary_size: int | None
    ignored: tuple[str, ...]


def read_reported(client: HttpClient, model: str) -> Reported:
    """Return what `/props` of llama.cpp and the list of models say; raise ServerError if there is no server."""
    ignored: list[str] = []
    props = read_props(client, ignored)
    listed = find_model(client, model, ignored)
    settings, meta = props.default_generation_settings or GenerationSettings(), listed.meta or ModelMeta()
    return Reported(
        slots=props.total_slots,
        context_length=settings.n_ctx or listed.max_model_len or meta.n_ctx,
        vocabulary_size=meta.n_vocab,
        ignored=tuple(ignored[:MAX_IGNORED]),
    )


def read_props(client: HttpClient, ignored: list[str]) -> Props:
    """Return the properties of the server, empty if it has no such path."""
    try:
        return parse_props(client.get("/props"), ignored)
    except ServerError:
        if not client.has_responded:
            raise
        return Props()


def find_model(client: HttpClient, model: str, ignored: list[str]) -> ListedModel:
    """Return the entry of a model in the server's list, empty if it is not listed."""
    try:
        models = parse_models(client.get("/v1/models"), ignored)
    except ServerRejected:
        models = []
    return next((entry for entry in models if entry.id == model), ListedModel(id=model))
