"""The types of values in `domain.toml` and in files like it, with their validation."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, Strict
from pydantic_core import PydanticCustomError

from fewparse.domains.sql.urls import parse_url
from fewparse.errors import UnknownName, UsageError
from fewparse.files import MAX_NAME_BYTES
from fewparse.registry import Registry
from fewparse.search.settings import RANGES
from fewparse.text import CONTROLS

MAX_PATH_CHARS = 1000


def name_in(registry: Registry[Any]) -> AfterValidator:
    """Validate a name of a registry."""

    def check(name: str) -> str:
        try:
            return registry.check(name)
        except UnknownName as error:
            text = f"{error.message}. {error.hint}"
            raise PydanticCustomError("unknown_name", "{text}", {"text": text}) from None

    return AfterValidator(check)


def in_range(name: str) -> Any:
    """Return the constraint of a numeric option."""
    _, low, high = RANGES[name]
    return Field(ge=low, le=high)


def check_file_name(name: str) -> str:
    """Validate the path of a file of the folder; links out of the folder are found when the file is read."""
    parts = re.split(r"[/\\]", name)
    if not name or ".." in parts or parts[0] == "" or ":" in parts[0] or CONTROLS.search(name):
        raise PydanticCustomError("file_name", "must be the path of a file inside the domain folder, without `..`")
    if any(len(part.encode()) > MAX_NAME_BYTES for part in parts) or len(name) > MAX_PATH_CHARS:
        raise PydanticCustomError("file_name", "the path is too long")
    return name


def check_function_name(name: str) -> str:
    """Validate the name of a function: its file and function, or its module and function."""
    source, _, function = name.partition(":")
    if not function.isidentifier():
        raise PydanticCustomError("function", 'must name a file and a function, as in "executor.py:execute"')
    if source.endswith(".py"):
        check_file_name(source)
    elif not all(part.isidentifier() for part in source.split(".")):
        raise PydanticCustomError("function", "the file of a function must be a .py file of the folder")
    return name


def check_database_url(text: str) -> str:
    """Validate the URL of a database, which must not contain a password."""
    try:
        url = parse_url(text)
    except UsageError as error:
        raise PydanticCustomError("url", "{text}", {"text": f"{error.message}. {error.hint}"}) from None
    if url.password is not None:
        raise PydanticCustomError(
            "password",
            "the URL contains a password: remove it, and name an environment variable that has it in "
            "`password_variable`",
        )
    return url.text


Names = Annotated[tuple[str, ...], Strict(False)]
FileName = Annotated[str, AfterValidator(check_file_name)]
FunctionName = Annotated[str, AfterValidator(check_function_name)]
DatabaseUrl = Annotated[str, AfterValidator(check_database_url)]
