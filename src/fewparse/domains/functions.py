"""Load the functions that `domain.toml` names, from its folder or a package that declares them; its database."""

import importlib
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewparse.domains.execution import IsolatedFunction, LoadError, call_directly
from fewparse.domains.sql.execution import DatabaseExecutor
from fewparse.domains.sql.urls import parse_url
from fewparse.errors import DomainError
from fewparse.files import path_inside

if TYPE_CHECKING:
    from fewparse.domains.schema import DatabaseTable

Function = Callable[[str], Any]
ENTRY_POINTS = {"executor": "fewparse.executors", "normal_form": "fewparse.normal_forms"}
"""The entry point groups in which installed packages declare functions for `domain.toml`, by its keys."""
BUNDLED = (
    "fewparse.domains.calendar.executor",
    "fewparse.domains.calls.program",
    "fewparse.datasets.overnight.executor",
    "fewparse.datasets.smcalflow.lispress",
)
"""Modules of this package whose functions any domain may use."""


def load_function(folder: Path, key: str, name: str, installed: bool) -> Function:
    """Return the function `name` ("file.py:function" or "module:function") of a key of domain.toml.

    A function of this package runs in this process, any other one in a process of its own. The settings of a
    domain that is `installed` as part of a package may name any module, those of a folder only declared functions.
    The function returns JSON values and raises `ExecutionError`. Raises `DomainError` if it cannot be loaded.
    """
    source, _, attribute = name.partition(":")
    settings = folder / "domain.toml"
    what = f"the {key.replace('_', ' ')} {source}"
    missing = DomainError(f"{what} has no function `{attribute}`", settings)
    if source.endswith(".py"):
        path = path_inside(folder, source).absolute()
        if path.exists() and not path.is_file():
            raise DomainError(f"{what} is not a regular file", settings)
        source = str(path)
    elif not (installed or source in BUNDLED or is_declared(name, key)):
        raise DomainError(
            f"{what} is not a file of the folder, and no installed package declares `{name}`",
            settings,
            hint=f'Put the function into a file of the folder: {key} = "{key}.py:{attribute}". Or install a '
            f"package that declares it by an entry point in the group {ENTRY_POINTS[key]}.",
        )
    elif source.partition(".")[0] == __name__.partition(".")[0]:
        function = getattr(importlib.import_module(source), attribute, None)
        if not callable(function):
            raise missing
        return partial(call_directly, function)
    try:
        return IsolatedFunction(source, attribute)
    except LoadError as error:
        if error.missing:
            raise missing from None
        raise DomainError(f"{what} cannot be loaded: {error}", settings, hint=error.hint) from None


def database_executor(settings: "DatabaseTable", folder: Path) -> DatabaseExecutor:
    """Return the executor of queries on a database; a relative path in its URL starts at the folder."""
    url = parse_url(settings.url).relative_to(folder).with_password_of(settings.password_variable)
    return DatabaseExecutor(url, settings.schemas, settings.max_rows, settings.max_seconds)


def check_executor(executor: Function | None) -> None:
    """Raise `DatabaseError` if an executor cannot open its database, before anything depends on it."""
    if isinstance(executor, DatabaseExecutor):
        executor.check()


def is_declared(name: str, key: str) -> bool:
    """Return whether an installed package declares a function by an entry point."""
    return any(point.value.replace(" ", "") == name for point in entry_points(group=ENTRY_POINTS[key]))
