"""Check the objects that a parser is made of, before anything is loaded: each follows a small protocol."""

import math
from collections.abc import Iterable
from numbers import Real
from pathlib import Path
from typing import Any

from fewparse.arguments import check_protocol, check_type, described, refuse
from fewparse.constrain.state import Constraint, State
from fewparse.domains.domain import Domain
from fewparse.errors import UsageError
from fewparse.example import Example, check_utterance
from fewparse.lm.load import NamedModel
from fewparse.lm.model import LanguageModel
from fewparse.options import Options
from fewparse.rerank import Reranker
from fewparse.retrieve.retriever import Retriever


def check_components(
    domain: Any,
    model: Any,
    options: Any = None,
    retriever: Any = None,
    retriever_model: Any = None,
    constraint: Any = None,
    reranker: Any = None,
) -> None:
    """Raise `UsageError` for a component of a wrong type, which says what was expected."""
    hint = f"Parser.from_domain({str(domain)!r}) loads a domain." if isinstance(domain, str | Path) else ""
    check_type("`domain`", domain, Domain, "a `Domain`", hint)
    check_model("`model`", model)
    check_type("`options`", options, (Options, type(None)), "`Options`", "Give single options by name: width=10.")
    if not (retriever is None or isinstance(retriever, str)):
        expected = "the name of a retriever, or an object that ranks examples"
        check_protocol("`retriever`", retriever, Retriever, expected, "Add a retriever")
    if not (retriever_model is None or isinstance(retriever_model, NamedModel)):
        check_model("`retriever_model`", retriever_model)
    if constraint is not None:
        check_constraint(constraint)
    if reranker is not None:
        check_protocol("`reranker`", reranker, Reranker, "an object that scores outputs", "Add a reranker")


def name_of(component: object) -> str | None:
    """Return the name of a component that is given by its name."""
    return component if isinstance(component, str) else None


def check_model(what: str, model: Any) -> None:
    """Raise `UsageError` for what is neither the name of a model nor a model."""
    if not isinstance(model, str):
        check_protocol(what, model, LanguageModel, "the name of a model, or a language model", "Add a model")


def check_constraint(constraint: Any) -> None:
    """Raise `UsageError` for what is not a constraint."""
    guide = 'See "Add a constraint" in the documentation.'
    if isinstance(constraint, str):
        hint = 'Name it in the domain: Domain(..., constraint={"kind": ...}), load_domain(..., constraint=...).'
        refuse("`constraint`", constraint, "a `Constraint`", hint)
    expected = "a `Constraint`, such as Trie(texts, model.vocabulary), or an instance of your own subclass"
    check_type("`constraint`", constraint, Constraint, expected, guide)
    check_type("the first state of `constraint`", constraint.start(), State, "a `State`", guide)


def check_request(utterance: Any, context: Any, without: Any) -> None:
    """Raise `UsageError` for an argument of `Parser.parse` of a wrong type, or an empty utterance."""
    check_type("the utterance", utterance, str, "a text", "parse_many takes several.")
    check_type("the context", context, str, "a text")
    if not isinstance(without, Iterable) or not all(isinstance(example, Example) for example in without):
        refuse("`without`", without, "a list of `Example`")
    check_utterance(utterance)


def check_score(output: str, score: Any) -> float:
    """Return the score that a reranker has given to an output; raise `UsageError` if it is not a finite number."""
    if not isinstance(score, Real) or not math.isfinite(score):
        raise UsageError(
            f"the reranker returned a score of {output!r} that is not a finite number: {described(score)}"
        )
    return float(score)


def check_vocabulary(constraint: Constraint | None, model: LanguageModel) -> None:
    """Raise `UsageError` for a constraint that is compiled for another vocabulary than that of the model."""
    if constraint is None or model.vocabulary is None:
        return
    if constraint.vocabulary is not model.vocabulary and constraint.vocabulary.tokens != model.vocabulary.tokens:
        raise UsageError(
            f"the constraint is compiled for a vocabulary of {len(constraint.vocabulary)} tokens, that of "
            f"{model.name} has {len(model.vocabulary)}",
            "Open the model first, and compile the constraint for `model.vocabulary`.",
        )
