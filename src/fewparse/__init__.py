"""fewparse turns a handful of examples and a grammar into a semantic parser.

Every name that users need is importable from here; each is imported from its module on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fewparse.errors import (
    BudgetExceeded,
    CalibrationError,
    ClusterError,
    ConstraintError,
    ContextOverflow,
    CorruptData,
    CorruptModel,
    DatabaseError,
    DataError,
    DataUnavailable,
    DeadEnd,
    DomainError,
    ExecutionError,
    FeedbackError,
    FewparseError,
    GrammarError,
    IllFormedOutput,
    InvalidProgram,
    LimitExceeded,
    ModelError,
    ModelUnavailable,
    ParseCancelled,
    ResultsError,
    RuntimeMismatch,
    SchemaError,
    ServerError,
    ServerRejected,
    ServerUnavailable,
    ServerUnsupported,
    SourceError,
    SqlError,
    TuningError,
    UnknownName,
    UsageError,
)

if TYPE_CHECKING:
    from fewparse.confidence.feedback import FeedbackEntry, FeedbackLog
    from fewparse.constrain.cfg import CfgConstraint
    from fewparse.constrain.state import Constraint, State
    from fewparse.constrain.trie import Trie
    from fewparse.constrain.unconstrained import Unconstrained
    from fewparse.domains.domain import Domain
    from fewparse.domains.load import known_domains, load_domain
    from fewparse.evaluate.metrics import Judge, Proportion
    from fewparse.evaluate.record_lines import Record
    from fewparse.evaluate.records import Records
    from fewparse.evaluate.run import SystemResult, load_split, parser_systems, run_evaluation
    from fewparse.events import Event
    from fewparse.example import Candidate, Choice, Example, Parse, Question, Target
    from fewparse.experiment.results import Results, read_results
    from fewparse.grammar.readers.load import load_grammar
    from fewparse.grammar.rules import Grammar
    from fewparse.grammar.synchronous import SynchronousGrammar
    from fewparse.grammar.translation.translator import Translation, Translator
    from fewparse.lm.http.budget import BudgetLimits
    from fewparse.lm.http.load import RemoteSettings
    from fewparse.lm.load import open_model
    from fewparse.lm.model import Completion, LanguageModel, NextTokens, Sampling, ScoredToken, Token
    from fewparse.lm.usage import Usage
    from fewparse.options import Options, ParserOptions
    from fewparse.parser import Parser
    from fewparse.prompt import Prompt, Template
    from fewparse.rerank import Reranker
    from fewparse.retrieve.lm import prepare_similarity
    from fewparse.retrieve.retriever import Pool, Retriever
    from fewparse.retry import RetryPolicy
    from fewparse.search.settings import SearchSettings
    from fewparse.tune.config import TuneConfig
    from fewparse.vocabulary import Vocabulary

__version__ = "0.2.0"
__all__ = [
    "BudgetExceeded",
    "BudgetLimits",
    "CalibrationError",
    "Candidate",
    "CfgConstraint",
    "Choice",
    "ClusterError",
    "Completion",
    "Constraint",
    "ConstraintError",
    "ContextOverflow",
    "CorruptData",
    "CorruptModel",
    "DataError",
    "DataUnavailable",
    "DatabaseError",
    "DeadEnd",
    "Domain",
    "DomainError",
    "Event",
    "Example",
    "ExecutionError",
    "FeedbackEntry",
    "FeedbackError",
    "FeedbackLog",
    "FewparseError",
    "Grammar",
    "GrammarError",
    "IllFormedOutput",
    "InvalidProgram",
    "Judge",
    "LanguageModel",
    "LimitExceeded",
    "ModelError",
    "ModelUnavailable",
    "NextTokens",
    "Options",
    "Parse",
    "ParseCancelled",
    "Parser",
    "ParserOptions",
    "Pool",
    "Prompt",
    "Proportion",
    "Question",
    "Record",
    "Records",
    "RemoteSettings",
    "Reranker",
    "Results",
    "ResultsError",
    "Retriever",
    "RetryPolicy",
    "RuntimeMismatch",
    "Sampling",
    "SchemaError",
    "ScoredToken",
    "SearchSettings",
    "ServerError",
    "ServerRejected",
    "ServerUnavailable",
    "ServerUnsupported",
    "SourceError",
    "SqlError",
    "State",
    "SynchronousGrammar",
    "SystemResult",
    "Target",
    "Template",
    "Token",
    "Translation",
    "Translator",
    "Trie",
    "TuneConfig",
    "TuningError",
    "Unconstrained",
    "UnknownName",
    "Usage",
    "UsageError",
    "Vocabulary",
    "known_domains",
    "load_domain",
    "load_grammar",
    "load_split",
    "open_model",
    "parser_systems",
    "prepare_similarity",
    "read_results",
    "run_evaluation",
]

_MODULES = {
    "fewparse.confidence.feedback": "FeedbackEntry FeedbackLog",
    "fewparse.constrain.cfg": "CfgConstraint",
    "fewparse.constrain.state": "Constraint State",
    "fewparse.constrain.trie": "Trie",
    "fewparse.constrain.unconstrained": "Unconstrained",
    "fewparse.domains.domain": "Domain",
    "fewparse.domains.load": "known_domains load_domain",
    "fewparse.evaluate.metrics": "Judge Proportion",
    "fewparse.evaluate.record_lines": "Record",
    "fewparse.evaluate.records": "Records",
    "fewparse.evaluate.run": "SystemResult load_split parser_systems run_evaluation",
    "fewparse.events": "Event",
    "fewparse.example": "Candidate Choice Example Parse Question Target",
    "fewparse.experiment.results": "Results read_results",
    "fewparse.grammar.readers.load": "load_grammar",
    "fewparse.grammar.rules": "Grammar",
    "fewparse.grammar.synchronous": "SynchronousGrammar",
    "fewparse.grammar.translation.translator": "Translation Translator",
    "fewparse.lm.http.budget": "BudgetLimits",
    "fewparse.lm.http.load": "RemoteSettings",
    "fewparse.lm.load": "open_model",
    "fewparse.lm.model": "Completion LanguageModel NextTokens Sampling ScoredToken Token",
    "fewparse.lm.usage": "Usage",
    "fewparse.options": "Options ParserOptions",
    "fewparse.parser": "Parser",
    "fewparse.prompt": "Prompt Template",
    "fewparse.rerank": "Reranker",
    "fewparse.retrieve.lm": "prepare_similarity",
    "fewparse.retrieve.retriever": "Pool Retriever",
    "fewparse.retry": "RetryPolicy",
    "fewparse.search.settings": "SearchSettings",
    "fewparse.tune.config": "TuneConfig",
    "fewparse.vocabulary": "Vocabulary",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
