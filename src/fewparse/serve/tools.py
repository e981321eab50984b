"""The operations that need no language model: execute, check, translate, complete, feedback."""

import threading

from fewparse.constrain.state import Constraint
from fewparse.domains.domain import PLAIN
from fewparse.errors import DatabaseError, ExecutionError, UsageError
from fewparse.grammar.analysis.derivation import from_derivation
from fewparse.serve.completion import completions
from fewparse.serve.feedback import give_feedback
from fewparse.serve.output import tree_node
from fewparse.serve.problems import without_paths
from fewparse.serve.requests import (
    CheckRequest,
    CompleteRequest,
    ExecuteRequest,
    FeedbackRequest,
    TranslateRequest,
)
from fewparse.serve.responses import (
    CheckResponse,
    CompleteResponse,
    ExecuteResponse,
    FeedbackResponse,
    TranslateResponse,
)
from fewparse.serve.service import Service
from fewparse.vocabulary import BYTES


async def execute(service: Service, request: ExecuteRequest, client: str) -> ExecuteResponse:
    """Execute a program; an error of the program is a field of the response."""
    domain = service.domain(request.domain)
    domain.check_execution()

    def work(_: threading.Event) -> ExecuteResponse:
        answer, error = None, None
        try:
            answer = domain.domain.execute(request.program)
        except DatabaseError:
            raise
        except ExecutionError as failed:
            error = without_paths(failed.message)
        return ExecuteResponse(domain=domain.name, program=request.program, answer=answer, error=error)

    return await service.on_grammar(client, work, request.program)


async def check(service: Service, request: CheckRequest, client: str) -> CheckResponse:
    """Return whether a text is well-formed."""
    domain = service.domain(request.domain)
    target = domain.target_of(request.target)

    def work(_: threading.Event) -> CheckResponse:
        found = domain.verdict(request.text, target)
        return CheckResponse.model_validate(
            found._asdict() | {"domain": domain.name, "target": target, "expected": list(found.expected)}
        )

    return await service.on_grammar(client, work, request.text)


async def translate(service: Service, request: TranslateRequest, client: str) -> TranslateResponse:
    """Translate a canonical utterance to a program, or a program to canonical utterances."""
    domain = service.domain(request.domain)

    def work(_: threading.Event) -> TranslateResponse:
        translator = domain.domain.scored_translator()
        if translator is None:
            raise UsageError(f"the domain {domain.name} has no synchronous grammar: nothing can be translated")
        text = request.text
        if request.to == "utterance":
            text = domain.domain.constraint_kind.canonical_program(text)
        translate = translator.to_program if request.to == "program" else translator.to_utterance
        found = translate(text, request.alternatives + 1)
        tree = from_derivation(found.k_best[0]) if request.tree and found.k_best else None
        return TranslateResponse(
            domain=domain.name,
            input=request.text,
            output=found.texts[0] if found.texts else None,
            alternatives=list(found.texts[1:]),
            derivations=found.derivation_count,
            error=found.error,
            tree=None if tree is None else tree_node(tree),
        )

    return await service.on_grammar(client, work, request.text)


async def complete(service: Service, request: CompleteRequest, client: str) -> CompleteResponse:
    """Return what may follow the start of an output, according to its constraint."""
    domain = service.domain(request.domain)
    target = domain.target_of(request.target)
    service.check_lengths(request.utterance)

    def work(_: threading.Event) -> CompleteResponse:
        constraint: Constraint = domain.domain.constraint(BYTES, target, request.utterance, PLAIN)
        valid, accepted, found = completions(constraint, request.text, request.limit)
        return CompleteResponse(
            domain=domain.name,
            target=target,
            valid=valid,
            accepted=accepted and valid == len(request.text),
            completions=found,
        )

    return await service.on_grammar(client, work, request.text)


async def feedback(service: Service, request: FeedbackRequest, client: str) -> FeedbackResponse:
    """Write what a user said about a parse to the log of its domain."""
    recent = service.recent.get(request.id)
    domain = service.domain(recent.domain)

    def work(_: threading.Event) -> FeedbackResponse:
        program = give_feedback(domain, recent, request)
        return FeedbackResponse(domain=domain.name, outcome=request.outcome, program=program)

    return await service.on_grammar(client, work, request.program or request.canonical or "")
