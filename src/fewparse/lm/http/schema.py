"""What servers report about themselves and their tokenizers, validated where it arrives.

A wrong optional value counts as not reported; the reason is kept for `fewparse models probe`.
"""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, ValidatorFunctionWrapHandler
from pydantic.functional_validators import WrapValidator
from pydantic_core.core_schema import ValidationInfo

from fewparse.errors import ServerUnsupported
from fewparse.lm.model import Token

MAX_SLOTS = 1024
MAX_VOCABULARY = 2_000_000
MAX_CONTEXT_LENGTH = 1_000_000_000
MAX_TOKEN_ID = 2**31 - 1
MAX_DESCRIPTION = 40

Slots = Annotated[int, Field(ge=1, le=MAX_SLOTS)]
ContextLength = Annotated[int, Field(ge=1, le=MAX_CONTEXT_LENGTH)]
VocabularySize = Annotated[int, Field(ge=1, le=MAX_VOCABULARY)]
TokenId = Annotated[int, Field(ge=0, le=MAX_TOKEN_ID)]
Byte = Annotated[int, Field(ge=0, le=255)]
M = TypeVar("M", bound=BaseModel)


def none_if_invalid(value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Validate an optional value; if it is wrong, record why in the context and return None."""
    if value is None:
        return None
    try:
        return validate(value)
    except ValidationError as error:
        if info.context is not None:
            reason = error.errors(include_url=False, include_context=False, include_input=False)[0]["msg"]
            info.context.append(f"{info.field_name} is {described(value)}: {reason[:1].lower()}{reason[1:]}")
        return None


def described(value: Any) -> str:
    """Return a value of JSON for a message: a short one as it is, else its type."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= MAX_DESCRIPTION else f"{text[:MAX_DESCRIPTION]}…"


Unsure = WrapValidator(none_if_invalid)


class ReportedModel(BaseModel):
    """Base of the models of this module: no conversions between types, other fields ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ModelMeta(ReportedModel):
    """Sizes of a model, as llama.cpp reports them."""

    n_vocab: Annotated[VocabularySize | None, Unsure] = None
    n_ctx: Annotated[ContextLength | None, Unsure] = None


class ListedModel(ReportedModel):
    """An entry of `/v1/models`; vLLM reports `max_model_len`."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    max_model_len: Annotated[ContextLength | None, Unsure] = None
    meta: Annotated[ModelMeta | None, Unsure] = None


class GenerationSettings(ReportedModel):
    """The settings in `/props`."""

    n_ctx: Annotated[ContextLength | None, Unsure] = None


class Props(ReportedModel):
    """The response of llama.cpp's `/props`."""

    total_slots: Annotated[Slots | None, Unsure] = None
    default_generation_settings: Annotated[GenerationSettings | None, Unsure] = None


class Piece(ReportedModel):
    """A token of llama.cpp's tokenizer; a piece that is not text is a list of bytes."""

    id: TokenId
    piece: str | list[Byte]

    @property
    def token(self) -> Token:
        """The token with its bytes."""
        return Token(self.piece.encode() if isinstance(self.piece, str) else bytes(self.piece), self.id)


class TokenizedPieces(ReportedModel):
    """The response of llama.cpp's tokenizer, with pieces."""

    tokens: list[Piece]


class TokenizedIds(ReportedModel):
    """The response of a tokenizer, ids only."""

    tokens: list[TokenId]


class LengthError(ReportedModel):
    """The lengths in llama.cpp's error for a prompt beyond the context length."""

    n_prompt_tokens: ContextLength
    n_ctx: ContextLength


def parse_models(payload: Any, ignored: list[str] | None = None) -> list[ListedModel]:
    """Parse a list of models; entries without a name are left out. `ignored` receives what was wrong."""
    entries = payload.get("data") if isinstance(payload, dict) else None
    models = []
    for entry in entries if isinstance(entries, list) else ():
        try:
            models.append(ListedModel.model_validate(entry, context=ignored))
        except ValidationError:
            continue
    return models


def parse_props(payload: Any, ignored: list[str]) -> Props:
    """Parse the properties of a server; `ignored` receives what was wrong."""
    try:
        return Props.model_validate(payload, context=ignored)
    except ValidationError:
        return Props()


def parse_tokens(payload: Any) -> list[Token]:
    """Parse the response of llama.cpp's tokenizer; raise ServerUnsupported if it has another structure."""
    return [piece.token for piece in parse(TokenizedPieces, payload).tokens]


def parse_ids(payload: Any) -> list[int]:
    """Parse a response of token ids; raise ServerUnsupported if it has another structure."""
    return parse(TokenizedIds, payload).tokens


def parse(kind: type[M], payload: Any) -> M:
    """Parse the response of a tokenizer."""
    try:
        return kind.model_validate(payload)
    except ValidationError:
        raise ServerUnsupported(
            "the server's response does not have the structure of tokens", "Use an OpenAI-compatible server."
        ) from None
