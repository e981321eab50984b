"""Open a language model by its name on the command line: the table of model kinds.

To add a kind, write an opener and give it a line in `MODEL_KINDS`, or install a package with an entry point:

    from fewparse.lm.load import ModelSettings, model_kind

    @model_kind(argument="NAME")
    def open_my_model(name: str, settings: ModelSettings) -> LanguageModel: ...

    [project.entry-points."fewparse.models"]
    my-kind = "my_package.models:open_my_model"

`--model my-kind:NAME` then opens it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fewparse.arguments import check_type
from fewparse.errors import UnknownName, UsageError
from fewparse.lm.adapter import Adapter
from fewparse.lm.catalogue import DEFAULT
from fewparse.lm.model import LanguageModel
from fewparse.lm.weights import Progress
from fewparse.registry import Registry

if TYPE_CHECKING:
    from fewparse.lm.http.load import RemoteSettings

EMBEDDED = "embedded"
HOSTED = re.compile(r"(?i)(chat)?gpt-|o\d\b|claude|gemini|deepseek|mistral|grok|command-|qwen|llama-")
"""How names of models behind servers start."""


@dataclass(frozen=True)
class ModelSettings:
    """The input of an opener: a callback for download progress, and how to connect to a server.

    `threads` is the number of threads of a model in this process; None for one per usable core. A GGUF model in
    this process serves `max_concurrency` parses at a time, each with its share of the threads.
    """

    progress: Progress | None = None
    remote: "RemoteSettings | None" = None
    threads: int | None = None
    max_concurrency: int = 1


Opener = Callable[[str, ModelSettings], LanguageModel]
"""Opens a model from the part of its name after the colon."""
Identify = Callable[[str, ModelSettings], str | None]
"""Returns the identity of a model, without opening it, from the part of its name after the colon."""


@dataclass(frozen=True)
class ModelKind:
    """A kind of model.

    `argument` describes the part of the name after the colon, as in `gguf:PATH`; None if there is none. If it is
    `optional`, there is a default model. A `remote` kind is behind a server and uses `ModelSettings.remote`. If
    `adapters` is true, its models implement `AdaptableModel`. If `concurrent` is true, it uses
    `ModelSettings.max_concurrency`. `identify` returns the identity of a model (see
    `model_identity`), None if it is unknown.
    """

    open: Opener
    argument: str | None = None
    optional: bool = False
    remote: bool = False
    adapters: bool = False
    concurrent: bool = False
    identify: Identify = lambda argument, settings: None


def model_kind(
    argument: str | None = None,
    optional: bool = False,
    remote: bool = False,
    adapters: bool = False,
    concurrent: bool = False,
    identify: Identify = lambda argument, settings: None,
) -> Callable[[Opener], ModelKind]:
    """Decorate an opener to make it a `ModelKind`."""
    return lambda opener: ModelKind(opener, argument, optional, remote, adapters, concurrent, identify)


MODEL_KINDS: Registry[ModelKind | Opener] = Registry(
    "model",
    {
        EMBEDDED: "fewparse.lm.embedded:open_embedded",
        "gguf": "fewparse.lm.embedded:open_gguf",
        "hf": "fewparse.lm.transformers:open_transformers",
        "openai": "fewparse.lm.http:open_completions",
        "openai-chat": "fewparse.lm.http:open_chat",
    },
    group="fewparse.models",
)


def model_names(select: Callable[[ModelKind], bool] = lambda _: True) -> tuple[str, ...]:
    """Return how the selected kinds are written on the command line, such as `gguf:PATH`."""
    return tuple(
        command_line_form(name) for name in MODEL_KINDS if (kind := kind_of(name)) is not None and select(kind)
    )


def command_line_form(name: str) -> str:
    """Return how a kind is written on the command line, such as `gguf:PATH` or `embedded[:NAME]`."""
    kind = kind_of(name)
    if kind is None or kind.argument is None:
        return name
    return f"{name}[:{kind.argument}]" if kind.optional else f"{name}:{kind.argument}"


def model_choices() -> tuple[str, ...]:
    """Return the names for a help text; kinds of entry points are listed without importing them."""
    bundled = map(command_line_form, MODEL_KINDS.bundled)
    return (*bundled, *(f"{name}:NAME" for name in MODEL_KINDS.choices if name not in MODEL_KINDS.bundled))


def kind_of(name: str) -> ModelKind | None:
    """Return the kind of the model with this name, or None if it is unknown.

    An entry point may be a plain opener: it is a local kind with an argument and without adapters.
    """
    prefix, colon, argument = name.partition(":")
    if prefix not in MODEL_KINDS:
        return None
    found = MODEL_KINDS[prefix]
    kind = found if isinstance(found, ModelKind) else ModelKind(found, argument="NAME")
    without_argument = kind.argument is None or (kind.optional and not argument)
    return None if colon and without_argument else kind


def is_default_model(name: str) -> bool:
    """Return whether this names the default embedded model, for which the adapters of domains are tuned."""
    return name in (EMBEDDED, f"{EMBEDDED}:{DEFAULT.name}")


def open_model(
    name: str = EMBEDDED,
    progress: Progress | None = None,
    remote: "RemoteSettings | None" = None,
    threads: int | None = None,
    max_concurrency: int = 1,
) -> LanguageModel:
    """Open the model with this name.

    `embedded` is downloaded on first use; `progress` is called meanwhile. `embedded:NAME` is another model of the
    catalogue, `gguf:PATH` and `hf:PATH_OR_NAME` are other models in this process; they have `threads` threads, or
    one per usable core. The first two serve `max_concurrency` parses at a time, each with its share of the threads
    and a KV cache of its own: more parses a second, each of which takes longer. `openai:NAME` and
    `openai-chat:NAME` are behind a server, to which `remote` describes the connection. Raises `UnknownName` for
    another name, and `ModelError` if the model cannot be opened.
    """
    check_type("the name of a model", name, str, "a text", "Known names: " + ", ".join(model_names()) + ".")
    return known_kind(name).open(name.partition(":")[2], ModelSettings(progress, remote, threads, max_concurrency))


def known_kind(name: str) -> ModelKind:
    """Return the kind of the model with this name; raise `UnknownName` if there is none."""
    kind = kind_of(name)
    if kind is None:
        error = UnknownName("model", name, model_names())
        if form := likely_form(name):
            error.hint = f"Did you mean {form}?"
        raise error
    return kind


def likely_form(name: str) -> str | None:
    """Return how a model is probably named whose kind is missing; None if that is unknown."""
    if name.endswith(".gguf"):
        return f"gguf:{name}"
    if HOSTED.match(name):
        return f"openai-chat:{name}"
    return f"hf:{name}, or openai-chat:{name} behind a server" if re.fullmatch(r"[\w.-]+/[\w.-]+", name) else None


def model_identity(model: LanguageModel) -> str | None:
    """Return what the results of a model depend on, so that they can be stored: its optional attribute `identity`.

    It is the hash of the files of a model in this process, and the name and address of one behind a server. None
    if that is unknown.
    """
    identity: str | None = getattr(model, "identity", None)
    return identity


class NamedModel:
    """A model that is opened when it is first used; takes the arguments of `open_model`.

    Raises `UnknownName` at once if there is no such kind of model.
    """

    def __init__(
        self, name: str, progress: Progress | None = None, remote: "RemoteSettings | None" = None
    ) -> None:
        self.name = name
        self._kind = known_kind(name)
        self._settings = ModelSettings(progress, remote)
        self._lock = Lock()
        self._opened: LanguageModel | None = None

    @cached_property
    def identity(self) -> str | None:
        """The identity of the model, without opening it; None if that is not possible."""
        return self._kind.identify(self.name.partition(":")[2], self._settings)

    def open(self) -> LanguageModel:
        """Return the model, opened by the first call."""
        with self._lock:
            if self._opened is None:
                self._opened = self._kind.open(self.name.partition(":")[2], self._settings)
            return self._opened

    def close(self) -> None:
        """Close the model if it is open; it can be opened again."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._opened = None


@runtime_checkable
class AdaptableModel(Protocol):
    """A model to which LoRA adapters can be applied."""

    def with_adapter(self, adapter: Adapter) -> LanguageModel:
        """Return a model with the weights changed by the adapter; this model is not changed."""


def with_adapter(model: LanguageModel, adapter: Adapter | None) -> LanguageModel:
    """Return the model with the adapter applied, or the model itself if there is no adapter."""
    if adapter is None:
        return model
    if not isinstance(model, AdaptableModel):
        kinds = " and ".join(model_names(lambda kind: kind.adapters))
        raise UsageError(f"{model.name} does not support adapters", f"Adapters are for {kinds}; omit --adapter.")
    return model.with_adapter(adapter)
