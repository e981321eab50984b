"""What responses say about parses, domains and models, without paths."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from fewparse.events import event_fields
from fewparse.example import Example, Parse
from fewparse.grammar.analysis.derivation import DerivationTree
from fewparse.lm.model import LanguageModel
from fewparse.search.decoder import DECODERS
from fewparse.serve.domain import ServedDomain
from fewparse.serve.limits import ServeLimits
from fewparse.serve.problems import without_paths
from fewparse.serve.responses import (
    DomainResponse,
    DomainSummary,
    ExampleResponse,
    ModelResponse,
    TreeNode,
)

MAX_TREE_DEPTH = 200
MAX_EXAMPLES = 200


def parse_fields(key: str, parse: Parse, details: bool) -> dict[str, Any]:
    """Return a parse as the fields of a response, without paths."""
    fields = {"id": key} | parse.as_dict() | {"model": public_model_name(parse.model)}
    if fields["answer_error"]:
        fields["answer_error"] = without_paths(fields["answer_error"])
    if details:
        fields["details"] = {
            "examples": [asdict(example) for example in parse.examples],
            "prompt": parse.prompt.text,
            "trace": [event_fields(event) for event in parse.trace],
        }
    return fields


def public_model_name(name: str) -> str:
    """Return the name of a model without the path of its file."""
    return without_paths(name.replace("gguf:", "gguf: ").replace("hf:", "hf: ")).replace(": ", ":")


def tree_node(tree: DerivationTree, parent: str | None = None, depth: int = 0) -> TreeNode:
    """Return a derivation for a response; what is nested very deeply is left out."""
    children: list[TreeNode | str] = []
    for child in tree.children:
        if isinstance(child, str):
            children.append(child)
        else:
            children.append(
                "..." if depth > MAX_TREE_DEPTH else tree_node(child, tree.translation or parent, depth + 1)
            )
    return TreeNode(label=tree.label, translation=tree.annotation(parent), children=children)


def domain_summary(domain: ServedDomain) -> DomainSummary:
    """Return what a list of domains says about one."""
    return DomainSummary(
        name=domain.name,
        description=domain.domain.table.description,
        target=domain.options.target,
        targets=domain.targets,
        executes=domain.options.execute,
        samples=domain.samples,
        reload_error=domain.reload_error,
    )


def domain_response(domain: ServedDomain, limits: ServeLimits) -> DomainResponse:
    """Return the settings, examples and statistics of a domain."""
    return DomainResponse(
        **domain_summary(domain).model_dump(),
        options=domain.public_options(),
        limits={"width": limits.width, "max_tokens": limits.max_tokens, "utterance_chars": limits.utterance_chars},
        decoders=list(DECODERS.choices),
        examples_count=len(domain.domain.examples),
        examples=example_responses(domain.domain.examples[:MAX_EXAMPLES]),
        constraint=domain.domain.table.constraint.kind,
        grammar=domain.grammar_statistics,
    )


def example_responses(examples: Iterable[Example]) -> list[ExampleResponse]:
    """Return examples for a response."""
    return [ExampleResponse.model_validate(asdict(example)) for example in examples]


def model_response(model: LanguageModel) -> ModelResponse:
    """Return what a list of models says about one."""
    return ModelResponse(
        name=public_model_name(model.name),
        context_length=model.context_length,
        vocabulary=None if model.vocabulary is None else len(model.vocabulary),
        local=model.local,
        max_concurrency=model.max_concurrency,
    )
