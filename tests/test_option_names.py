"""An option has one name on the command line, in domain.toml and in Python."""

import inspect
from dataclasses import fields

from fewparse.cli import calibrate, evaluate, experiment, optimize, parse, reproduce, serve, tune
from fewparse.client import RequestOptions
from fewparse.domains.schema import ConstraintTable, DecisionTable, DomainTable, RetrieveTable, SearchTable
from fewparse.experiment.grid import AXES
from fewparse.lm.http.budget import BudgetLimits
from fewparse.lm.http.load import RemoteSettings
from fewparse.optimize.axes import SETTINGS
from fewparse.options import SEARCH_OPTIONS, AllOptions
from fewparse.retry import RetryPolicy
from fewparse.serve.requests import ParseOptions
from fewparse.tune.config import TuneConfig

PYTHON = set(AllOptions.__annotations__)
REMOTE = {field.name for owner in (RemoteSettings, BudgetLimits, RetryPolicy) for field in fields(owner)}
COMMAND_ONLY = {"domain", "model", "as_json"}


def parameters(command: object) -> set[str]:
    """Return the names of the parameters of a command."""
    assert callable(command)
    return set(inspect.signature(command).parameters) - COMMAND_ONLY


def test_options_of_parse_and_eval_have_their_names_in_python() -> None:
    assert parameters(parse.parse) - {"utterance", "context", "show", "yes", "log"} <= PYTHON | REMOTE
    assert (
        parameters(evaluate.evaluation) - {"split", "limit", "compare", "calibration", "out", "show"}
        <= PYTHON | REMOTE
    )


def test_options_of_reproduce_have_their_names_in_grids_and_experiments() -> None:
    own = {"table", "dataset", "full", "limit", "data", "out", "run", "dry_run", "markdown"}
    assert parameters(reproduce.reproduce) - own <= set(AXES) | REMOTE | parameters(experiment.experiment)


def test_every_option_of_the_search_is_on_the_command_line() -> None:
    assert set(SEARCH_OPTIONS) <= parameters(parse.parse) & parameters(evaluate.evaluation)


def test_options_of_tune_have_their_names_in_python() -> None:
    config = {field.name for field in fields(TuneConfig)}
    assert parameters(tune.tune) - {"path", "calibrate"} <= PYTHON | config


def test_options_of_calibrate_have_their_names_in_python() -> None:
    own = {"folds", "epochs", "negatives", "max_declined", "limit"}
    assert parameters(calibrate.calibrate) - own <= PYTHON | REMOTE
    assert set(SEARCH_OPTIONS) - {"seed"} <= parameters(calibrate.calibrate)


def test_options_of_optimize_have_their_names_in_python() -> None:
    own = {"minutes", "folds", "seed", "path", "dry_run"}
    assert parameters(optimize.optimize_command) - own <= PYTHON | REMOTE
    assert set(SETTINGS) <= parameters(optimize.optimize_command) & PYTHON


def test_options_of_requests_have_their_names_in_python() -> None:
    assert set(ParseOptions.model_fields) <= PYTHON
    assert set(RequestOptions.__annotations__) == set(ParseOptions.model_fields)


def test_options_of_serve_have_their_names_in_python() -> None:
    server = {
        "domains",
        "host",
        "port",
        "reload",
        "mcp",
        "playground",
        "queue",
        "request_deadline",
        "trusted_proxies",
    }
    safety = {"api_key_file", "allow_execute", "allow_host", "cors_origin"}
    assert parameters(serve.serve) - server - safety <= PYTHON | REMOTE


def test_keys_of_domain_toml_have_their_names_in_python() -> None:
    keys = {*SearchTable.model_fields, *RetrieveTable.model_fields, *DecisionTable.model_fields}
    assert keys <= PYTHON
    constraint = {field.alias or name for name, field in ConstraintTable.model_fields.items()}
    assert {"grammar", "copy"} <= constraint & PYTHON
    assert {"target", "prompt", "pool", "paper", "constraint"} <= set(DomainTable.model_fields) & PYTHON
