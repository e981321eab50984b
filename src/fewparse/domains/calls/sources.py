"""The sources of functions: OpenAPI documents, lists of tools, Python functions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fewparse.domains.calls.declarations import Declarations, read_declarations

SourceKind = Literal["openapi", "functions", "json"]


@dataclass(frozen=True)
class Source:
    """The functions of a source. `left_out` has the reasons for what was left out of it.

    `python_folder` is the folder from which the module of Python functions is imported, if it is not installed.
    """

    kind: SourceKind
    name: str
    declarations: Declarations
    description: str = ""
    left_out: tuple[str, ...] = ()
    python_folder: Path | None = None


def read_source(kind: SourceKind, name: str, skip: bool = False) -> Source:
    """Read a file, or import a module; with `skip`, functions that cannot be read are left out."""
    match kind:
        case "openapi":
            from fewparse.domains.calls.openapi import read_openapi

            declarations, left_out, description = read_openapi(Path(name), skip)
            return Source(kind, name, declarations, description, tuple(left_out))
        case "functions":
            from fewparse.domains.calls.python_functions import module_folder, read_python

            declarations, left_out = read_python(name, skip)
            return Source(kind, name, declarations, "", tuple(left_out), module_folder(name))
        case "json":
            return Source(kind, name, read_declarations(Path(name)))
