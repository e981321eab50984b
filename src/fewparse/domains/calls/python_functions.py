"""Python functions as declarations, whose type hints pydantic reads; and the executor that calls them."""

import asyncio
import importlib
import inspect
import os
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter, validate_call
from pydantic.errors import (
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUndefinedAnnotation,
)
from pydantic_core import to_jsonable_python

from fewparse.domains.calls.declarations import Declarations, FunctionDeclaration, check_names, parameters_of
from fewparse.domains.calls.docstrings import read_docstring
from fewparse.domains.calls.program import read_program
from fewparse.domains.calls.references import SpecDocument
from fewparse.domains.calls.schemas import Normaliser, Schema
from fewparse.domains.calls.typed_dicts import readable
from fewparse.errors import SourceError, UnknownName, UsageError

Function = Callable[..., Any]
MULTIPLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY)
WITHOUT_SCHEMA = (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUndefinedAnnotation)


def read_python(name: str, skip: bool = False) -> tuple[Declarations, list[str]]:
    """Return the functions of `module:object`; with `skip`, those that cannot be declared are left out and listed.

    The object is a function, a class or an instance (its public methods), a list of functions, or, without
    `:object`, the module itself. Raises `UsageError` if it cannot be imported or has no functions.
    """
    found = find_functions(name)
    document = SpecDocument({}, name)
    check_names((function for function, _ in found), document)
    definitions: dict[str, Schema] = {}
    functions, left_out = [], []
    for function_name, function in found:
        try:
            functions.append(declare(function_name, function, document, definitions))
        except SourceError as error:
            if not skip:
                raise
            left_out.append(error.message)
    return Declarations(tuple(functions), definitions), left_out


def find_functions(name: str) -> list[tuple[str, Function]]:
    """Return the functions of `module:object` with their names; raise `UsageError` if there are none."""
    module_name, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")) or module_name.endswith(".py"):
        hint = "Write it as in --from-functions package.module:object, without `.py`."
        raise UsageError(f"{module_name!r} is not the name of a module", hint)
    owner: Any = import_module(module_name)
    for part in attribute.split(".") if attribute else ():
        if not hasattr(owner, part):
            raise UnknownName(f"object of {module_name}", part, [n for n in dir(owner) if not n.startswith("_")])
        owner = getattr(owner, part)
    found = list(functions_of(owner, name))
    if not found:
        raise UsageError(
            f"{name} has no functions",
            "Name a function, a class or an object with methods, a list of functions, or a module with functions.",
        )
    return found


def import_module(name: str) -> ModuleType:
    """Import a module, also from the working directory; raise `UsageError` if it cannot be imported."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            hint = "It must be installed, or in the working directory. PYTHONPATH adds folders."
            raise UsageError(f"there is no module {name}", hint) from None
        raise UsageError(f"the module {name} cannot be imported: {error}") from error
    except BaseException as error:  # a module may raise anything, also SystemExit
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UsageError(f"the module {name} cannot be imported: {type(error).__name__}: {error}") from error


def functions_of(owner: Any, name: str) -> Iterator[tuple[str, Function]]:
    """Yield the functions of an object with their names."""
    if isinstance(owner, ModuleType):
        public = getattr(owner, "__all__", None)
        for key, value in vars(owner).items():
            own = key in public if public is not None else getattr(value, "__module__", None) == owner.__name__
            if own and not key.startswith("_") and inspect.isroutine(value):
                yield key, value
    elif inspect.isroutine(owner):
        yield name_of(owner, name), owner
    elif isinstance(owner, list | tuple | set | frozenset):
        for each in owner:
            if not callable(each):
                raise UsageError(f"{name} has a member that is not a function: {each!r:.100}")
            yield name_of(each, name), each
    elif isinstance(owner, dict):
        for key, value in owner.items():
            if not (isinstance(key, str) and callable(value)):
                raise UsageError(f"{name} is a dictionary, and {key!r:.100} is not the name of a function")
            yield key, value
    elif isinstance(owner, type):
        yield from methods_of(instance_of(owner, name))
    else:
        yield from methods_of(owner)


def name_of(function: Function, owner: str) -> str:
    """Return the name of a function; raise `UsageError` if it has none."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        hint = "Use functions that are defined by `def`, or a dictionary of functions by name."
        raise UsageError(f"a function of {owner} has no name: {function!r:.100}", hint)
    return name


def instance_of(kind: type, name: str) -> Any:
    """Return an instance of a class, made without arguments; raise `UsageError` if that fails."""
    try:
        return kind()
    except Exception as error:
        hint = "Name an instance of it instead, such as a variable of the module."
        raise UsageError(f"the class {name} cannot be made without arguments: {error}", hint) from error


def methods_of(owner: Any) -> Iterator[tuple[str, Function]]:
    """Yield the public methods of an instance that are written in Python, in the order of their definition."""
    names = dict.fromkeys(key for kind in reversed(type(owner).__mro__[:-1]) for key in vars(kind))
    for key in names:
        value = getattr(owner, key, None)
        if not key.startswith("_") and (inspect.ismethod(value) or inspect.isfunction(value)):
            yield key, value


def declare(
    name: str, function: Function, document: SpecDocument, definitions: dict[str, Schema]
) -> FunctionDeclaration:
    """Return the declaration of a function; raise `SourceError` if its parameters have no JSON Schema."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise document.error(name, f"it has no signature: {error}") from None
    for parameter in signature.parameters.values():
        if parameter.kind in MULTIPLE:
            hint = "Arguments are passed by name. Leave out such functions: --skip-unsupported."
            raise document.error(name, f"the parameter {parameter} cannot be passed by name", hint)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # defaults that are no JSON values are left out
            adapter: TypeAdapter[Any] = TypeAdapter(readable(function))  # type: ignore[arg-type]
            schema = adapter.json_schema()
    except WITHOUT_SCHEMA as error:
        reason = str(error).split("\n")[0].split(". Set `")[0]  # pydantic's advice is for its models
        hint = "Use types that pydantic can read from JSON, such as str, int, list[str], Literal or a dataclass."
        raise document.error(name, f"a parameter has no JSON Schema: {reason}", hint) from None
    except Exception as error:  # annotations may be any code
        raise document.error(name, f"its parameters cannot be read: {error}") from None
    about = read_docstring(inspect.getdoc(function) or "")
    parameters = parameters_of(
        Normaliser(SpecDocument(accepting(schema), document.path), definitions).schema(accepting(schema), name),
        name,
        document,
    )
    for key, text in about.parameters.items():
        if key in parameters.get("properties", {}):
            parameters["properties"][key].setdefault("description", text)
    return FunctionDeclaration(name, about.summary, parameters)


def accepting(value: Any) -> Any:
    """Return a JSON Schema by pydantic without `uniqueItems`: a function takes any list for a set."""
    if isinstance(value, dict):
        return {key: accepting(each) for key, each in value.items() if key != "uniqueItems" or each is not True}
    return [accepting(each) for each in value] if isinstance(value, list) else value


class PythonCalls:
    """Calls the functions of `module:object`; results are JSON values.

    Arguments are converted to the types of the parameters, such as dataclasses and dates.
    """

    def __init__(self, name: str) -> None:
        self._functions = {key: validate_call(readable(function)) for key, function in find_functions(name)}

    def __call__(self, program: str) -> Any:
        """Return the result of a call, or those of a list of calls, which are made one after another."""
        calls, several = read_program(program)
        results = [self._call(call.name, call.arguments) for call in calls]
        return results if several else results[0]

    def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        if name not in self._functions:
            raise ValueError(f"there is no function {name}")
        result = self._functions[name](**arguments)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        return to_jsonable_python(result)


def module_folder(name: str) -> Path | None:
    """Return the folder that must be on the path to import a module; None if it is an installed package."""
    module = name.partition(":")[0]
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return None
    path = Path(file).absolute()
    folder = path.parents[module.count(".") + (path.stem == "__init__")]
    installed = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return None if str(folder) in installed else folder
