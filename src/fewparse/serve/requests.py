"""The JSON of requests; the OpenAPI document is made from these classes."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from fewparse.confidence.feedback import Outcome
from fewparse.example import Target
from fewparse.grammar.synchronous import Side
from fewparse.retrieve.retriever import Order
from fewparse.search.settings import RANGES
from fewparse.text import is_unicode


def check_text(text: str) -> str:
    """Validate that a text can be encoded as UTF-8."""
    if not is_unicode(text):
        raise PydanticCustomError("unicode", "must be Unicode text, without lone surrogates")
    return text


def check_utterance(text: str) -> str:
    """Validate an utterance."""
    if not text.strip():
        raise PydanticCustomError("empty", "must not be empty")
    return check_text(text)


def in_range(name: str) -> Any:
    """Return the range of a numeric option."""
    _, low, high = RANGES[name]
    return Field(default=None, ge=low, le=high)


TextField = Annotated[str, AfterValidator(check_text)]
Utterance = Annotated[str, AfterValidator(check_utterance), Field(min_length=1)]
DomainName = Annotated[
    str | None,
    Field(max_length=200, description="Name of a domain of this server; may be omitted if there is only one."),
]


class Request(BaseModel):
    """A request; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ParseOptions(Request):
    """Options of a parse, named as in Python and on the command line; by default, those of the domain."""

    target: Target | None = None
    decoder: Annotated[str | None, Field(max_length=100)] = None
    width: Annotated[int | None, in_range("width")] = None
    temperature: Annotated[float | None, in_range("temperature"), Field(strict=False)] = None
    max_tokens: Annotated[int | None, in_range("max_tokens")] = None
    rounds: Annotated[int | None, in_range("rounds")] = None
    margin: Annotated[float | None, Field(ge=0, le=1000, strict=False)] = None
    seed: Annotated[int | None, in_range("seed")] = None
    constrained: bool | None = None
    rerank: Annotated[float | None, in_range("rerank"), Field(strict=False)] = None
    vote: bool | None = None
    retriever: Annotated[str | None, Field(max_length=100)] = None
    examples: Annotated[int | None, in_range("examples"), Field(le=100)] = None
    order: Order | None = None
    adapter: Annotated[
        Literal["none"] | None, Field(description="`none`: prompt the model with examples, without its adapter.")
    ] = None
    execute: bool | None = None
    max_risk: Annotated[float | None, in_range("max_risk"), Field(strict=False)] = None
    n_best: Annotated[int | None, in_range("n_best"), Field(le=100)] = None


class ParseBase(Request):
    """What requests for one and for many parses have in common."""

    domain: DomainName = None
    context: Annotated[TextField, Field(description="The dialogue before the utterance.")] = ""
    options: ParseOptions = ParseOptions()
    details: Annotated[
        bool, Field(description="Whether parses include their examples, prompt and trace of the search.")
    ] = False
    deadline: Annotated[
        float | None, Field(gt=0, strict=False, description="Seconds after which the request fails.")
    ] = None


class ParseRequest(ParseBase):
    """One utterance, or many: `utterance` or `utterances`."""

    utterance: Utterance | None = None
    utterances: Annotated[list[Utterance] | None, Field(min_length=1)] = None


class StreamRequest(ParseBase):
    """One utterance, parsed with a stream of events."""

    utterance: Utterance


class ExecuteRequest(Request):
    """A program to execute."""

    domain: DomainName = None
    program: TextField


class CheckRequest(Request):
    """A text to check: a program or a canonical utterance, by default what the domain's model generates."""

    domain: DomainName = None
    text: TextField
    target: Target | None = None


class TranslateRequest(Request):
    """A text to translate to the other side of the grammar."""

    domain: DomainName = None
    text: TextField
    to: Side = "program"
    alternatives: Annotated[int, Field(ge=0, le=50, description="How many others are listed at most.")] = 10
    tree: Annotated[bool, Field(description="Whether the best derivation is included.")] = False


class CompleteRequest(Request):
    """The start of an output; for a grammar that copies text, with the utterance from which it is copied."""

    domain: DomainName = None
    text: TextField = ""
    target: Target | None = None
    utterance: TextField = ""
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class ScratchExample(Request):
    """An example of a domain that is being written."""

    utterance: TextField
    program: TextField
    canonical: TextField | None = None


class ScratchRequest(Request):
    """A grammar and its examples, which are checked and not stored; `sentences` random ones are returned."""

    grammar: TextField
    dialect: Literal["scfg", "lark"] = "scfg"
    examples: list[ScratchExample] = []
    copied: Annotated[list[TextField], Field(max_length=20, description="Rules whose text is copied.")] = []
    sentences: Annotated[int, Field(ge=0, le=50)] = 10
    seed: Annotated[int, in_range("seed")] = 0


class FeedbackRequest(Request):
    """What a user said about a parse.

    The best candidate is right (`accepted`), or the one with the index `candidate` (`chosen`); none is
    (`rejected`), but this `program` or `canonical` utterance (`corrected`); nothing in the domain expresses the
    utterance (`out_of_scope`).
    """

    id: Annotated[str, Field(max_length=100, description="The `id` of the parse.")]
    outcome: Outcome
    candidate: Annotated[int | None, Field(ge=0, le=1000)] = None
    program: TextField | None = None
    canonical: TextField | None = None
