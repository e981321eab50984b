"""The JSON of responses; the OpenAPI document is made from these classes."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from fewparse.example import Decision, Target


class Response(BaseModel):
    """A response. A client should ignore fields that it does not know."""


class ErrorDetail(Response):
    """A mistake in a request: the field, and what is wrong with it."""

    field: str
    message: str


class Error(Response):
    """An error: what happened, and what to do next."""

    code: str
    message: str
    hint: str | None
    details: list[ErrorDetail]


class ErrorResponse(Response):
    """The response to a request that failed."""

    error: Error


class CandidateResponse(Response):
    """An output, its program, and its score after and before reranking."""

    text: str
    score: float
    program: str | None
    model_score: float


class ExampleResponse(Response):
    """A training example in a prompt."""

    utterance: str
    program: str
    canonical: str | None
    context: str


class ChoiceResponse(Response):
    """A reading that a question offers: the candidate with this index, in words."""

    text: str
    program: str
    candidate: int


class QuestionResponse(Response):
    """The question to ask before a program is executed."""

    text: str
    choices: list[ChoiceResponse]


class ParseDetails(Response):
    """How a parse was found: examples, best first, prompt, and the events of the search."""

    examples: list[ExampleResponse]
    prompt: str
    trace: list[dict[str, Any]]


class ParseResponse(Response):
    """A parse, as `fewparse parse --json` prints it, with an `id` for feedback."""

    model_config = ConfigDict(extra="allow")

    id: str
    utterance: str
    target: Target
    output: str | None
    program: str | None
    answer: Any
    answer_error: str | None
    failure: str | None
    confidence: float | None
    decision: Decision | None
    question: QuestionResponse | None
    candidates: list[CandidateResponse]
    examples_used: int
    examples_dropped: int
    description_lines_dropped: int
    notes: list[str]
    usage: dict[str, float | None]
    model: str
    details: ParseDetails | None = None


class FailedParse(Response):
    """An utterance of many that could not be parsed."""

    utterance: str
    error: Error


class ParsesResponse(Response):
    """The parses of a request, in the order of its utterances. If none succeeded, the request fails instead."""

    domain: str
    parses: list[ParseResponse | FailedParse]


class ExecuteResponse(Response):
    """The answer of a program, or the reason why it has none."""

    domain: str
    program: str
    answer: Any
    error: str | None


class CheckResponse(Response):
    """Whether a text is well-formed; if not, from which character on, and what was expected there."""

    domain: str
    target: Target
    accepted: bool
    position: int | None
    expected: list[str]
    error: str | None


class TreeNode(Response):
    """A node of a derivation; its children are nodes and texts. `translation` is its text on the other side."""

    label: str
    translation: str | None
    children: list["TreeNode | str"]


class TranslateResponse(Response):
    """The best translation and others. `derivations` is null if there are infinitely many."""

    domain: str
    input: str
    output: str | None
    alternatives: list[str]
    derivations: int | None
    error: str | None
    tree: TreeNode | None


class CompleteResponse(Response):
    """What may follow a text: continuations up to the next word, and whether the text may end.

    If the text is not the start of an output, `valid` is how many of its characters are, and the continuations
    are those of that part.
    """

    domain: str
    target: Target
    valid: int
    accepted: bool
    completions: list[str]


class ModelResponse(Response):
    """A language model of this server."""

    name: str
    context_length: int
    vocabulary: int | None
    local: bool
    max_concurrency: int


class ModelsResponse(Response):
    """The language models of this server."""

    models: list[ModelResponse]


class DomainSummary(Response):
    """A domain of this server. `reload_error` is why its files, which changed, are not used."""

    name: str
    description: str
    target: Target
    targets: list[Target]
    executes: bool
    samples: list[str]
    reload_error: str | None


class DomainsResponse(Response):
    """The domains of this server."""

    domains: list[DomainSummary]


class DomainResponse(DomainSummary):
    """The settings of a domain, its training examples (the first ones), and figures of its grammar."""

    options: dict[str, Any]
    limits: dict[str, float]
    decoders: list[str]
    examples_count: int
    examples: list[ExampleResponse]
    constraint: str
    grammar: dict[str, Any] | None


class StatusResponse(Response):
    """The status of the server."""

    status: str


class Finding(Response):
    """What a check found: an error, a warning or a note."""

    level: Literal["error", "warning", "note"]
    kind: str
    message: str
    location: str | None


class Sentence(Response):
    """A random sentence of a grammar."""

    utterance: str | None
    program: str


class ScratchResponse(Response):
    """Whether there is no error, the findings of the check, and random sentences."""

    passed: bool
    findings: list[Finding]
    sentences: list[Sentence]


class FeedbackResponse(Response):
    """Feedback was written to the log, with this program."""

    domain: str
    outcome: str
    program: str | None
